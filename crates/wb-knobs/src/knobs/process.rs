//! What every new process gets.

use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::sysctl;
use crate::target::KnobTarget;
use crate::writes::{KnobWrites, number_in};

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
    fn targets(&self, _: &SysRoot) -> Vec<KnobTarget> {
        vec![KnobTarget::System]
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel does not show whether it randomises"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Number(sys.number("/proc/sys/kernel/randomize_va_space")?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Number(1 | 2) => Assessment::Yes,
            _ => Assessment::Unknown {
                reason: "all samples share one layout: steady, but with whatever bias that layout has",
            },
        }
    }
    fn writes(&self, _: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        let number = if wanted == "off" { "0" } else { wanted };
        // The kernel takes any number, and does by those above 2 what it does by 2.
        number_in("/proc/sys/kernel/randomize_va_space", self.name(), number, 0..=2)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        sysctl("kernel.randomize_va_space=2")
    }
}
