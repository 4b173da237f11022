//! Several threads on one core.

use wb_sys::SysRoot;

use crate::dependents::{of_cpus, of_frequency, of_interrupts};
use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::knobs::shield;
use crate::shell_commands::echo;
use crate::target::KnobTarget;
use crate::writes::{KnobWrites, parse_switch, setting_write};

/// Whether cores run several threads at once.
pub struct Smt;

impl Knob for Smt {
    fn name(&self) -> &'static str {
        "smt"
    }
    fn why(&self) -> &'static str {
        "whatever runs on the sibling takes execution units and cache from the measured thread"
    }
    fn evidence(&self) -> &'static str {
        "processor makers' optimisation manuals: siblings share execution units and first- and second-level cache; a core of two busy threads does 1.2 to 1.3 times the work of one, so each gets about 60 %"
    }
    fn targets(&self, _: &SysRoot) -> Vec<KnobTarget> {
        vec![KnobTarget::System]
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel shows no siblings of any core"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Switch(sys.number::<u8>("/sys/devices/system/cpu/smt/active")? != 0))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(*value == KnobValue::Switch(false), "one thread on each core while measuring")
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        const CONTROL: &str = "/sys/devices/system/cpu/smt/control";
        match sys.text(CONTROL)?.as_str() {
            "on" | "off" => setting_write(CONTROL, if parse_switch(wanted)? { "on" } else { "off" }),
            other => Err(Unsupported(format!("the kernel says it is `{other}`"))),
        }
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        echo("off", "/sys/devices/system/cpu/smt/control")
    }
    /// Siblings that go offline leave their interrupts and cpusets to others, and all of them come back online.
    fn dependents(&self, sys: &SysRoot, _: &KnobTarget) -> Vec<String> {
        [of_cpus(sys), of_interrupts(sys), shield::cpusets(sys), of_frequency(sys)].concat()
    }
}
