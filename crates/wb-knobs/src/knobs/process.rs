//! Properties of new processes.

use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobDescription, KnobValue, Unsupported};
use crate::shell_commands::sysctl;
use crate::target::KnobTarget;
use crate::writes::{KnobWrites, number_in};

/// Address-space layout randomisation.
pub struct Aslr;

impl Knob for Aslr {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "aslr",
            why: "the memory layout affects a program's speed; it is either randomised for every sample or biased in the same way in all",
            evidence: "Mytkowicz, Diwan, Hauswirth and Sweeney (ASPLOS 2009): layout alone can turn a speed-up into a slow-down; Curtsinger and Berger (ASPLOS 2013): randomising it repeatedly turns the bias into variance that statistics can handle",
            unsupported_reason: "the kernel does not report its address randomisation",
        }
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Number(sys.number("/proc/sys/kernel/randomize_va_space")?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Number(1 | 2) => Assessment::Yes,
            _ => Assessment::Unknown { reason: "all samples share one layout: steady, but biased by that layout" },
        }
    }
    fn writes(&self, _: &SysRoot, _: &KnobTarget, value: &str) -> KnobWrites {
        let number = if value == "off" { "0" } else { value };
        // The kernel accepts any number; those above 2 act like 2.
        number_in("/proc/sys/kernel/randomize_va_space", self.name(), number, 0..=2)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        sysctl("kernel.randomize_va_space=2")
    }
}
