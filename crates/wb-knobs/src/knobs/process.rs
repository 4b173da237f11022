//! What every new process gets.

use wb_sys::SysRoot;

use crate::change::sysctl;
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::set::{Writes, number_in};
use crate::target::Target;

/// Address-space layout randomisation.
pub struct Aslr;

impl Knob for Aslr {
    fn name(&self) -> &'static str {
        "aslr"
    }
    fn why(&self) -> &'static str {
        "the layout of memory changes a program's speed; it is either drawn anew for every sample or wrong in the same way in all"
    }
    fn evidence(&self) -> &'static str {
        "Mytkowicz, Diwan, Hauswirth and Sweeney (ASPLOS 2009): layout alone can turn a speed-up into a slow-down; Curtsinger and Berger (ASPLOS 2013): drawing it anew makes it a spread that statistics can see"
    }
    fn targets(&self, _: &SysRoot) -> Vec<Target> {
        vec![Target::System]
    }
    fn absent(&self) -> &'static str {
        "the kernel does not show whether it randomises"
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Number(sys.number("/proc/sys/kernel/randomize_va_space")?))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        match value {
            Value::Number(1 | 2) => Quiet::Yes,
            _ => Quiet::Unknown {
                reason: "all samples share one layout: steady, but with whatever bias that layout has",
            },
        }
    }
    fn set(&self, _: &SysRoot, _: &Target, wanted: &str) -> Writes {
        let number = if wanted == "off" { "0" } else { wanted };
        // The kernel takes any number, and does by those above 2 what it does by 2.
        number_in("/proc/sys/kernel/randomize_va_space", self.name(), number, 0..=2)
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        sysctl("kernel.randomize_va_space=2")
    }
}
