//! Several threads on one core.

use wb_sys::SysRoot;

use crate::change::echo;
use crate::dependents::{of_cpus, of_frequency, of_interrupts};
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::knobs::shield;
use crate::set::{Writes, one, switch};
use crate::target::Target;

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
    fn targets(&self, _: &SysRoot) -> Vec<Target> {
        vec![Target::System]
    }
    fn absent(&self) -> &'static str {
        "the kernel shows no siblings of any core"
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Switch(sys.number::<u8>("/sys/devices/system/cpu/smt/active")? != 0))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        Quiet::when(*value == Value::Switch(false), "one thread on each core while measuring")
    }
    fn set(&self, sys: &SysRoot, _: &Target, wanted: &str) -> Writes {
        const CONTROL: &str = "/sys/devices/system/cpu/smt/control";
        match sys.text(CONTROL)?.as_str() {
            "on" | "off" => one(CONTROL, if switch(wanted)? { "on" } else { "off" }),
            other => Err(Unsupported(format!("the kernel says it is `{other}`"))),
        }
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        echo("off", "/sys/devices/system/cpu/smt/control")
    }
    /// Siblings that go offline leave their interrupts and cpusets to others, and all of them come back online.
    fn dependents(&self, sys: &SysRoot, _: &Target) -> Vec<String> {
        [of_cpus(sys), of_interrupts(sys), shield::cpusets(sys), of_frequency(sys)].concat()
    }
}
