use wb_sys::SysRoot;

use crate::dependents::{cpu_settings, frequency_settings, interrupt_affinities};
use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::knobs::shield;
use crate::shell_commands::echo;
use crate::target::KnobTarget;
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrites, parse_switch, setting_write};

/// Simultaneous multithreading: cores run several threads at once.
pub struct Smt;

impl Knob for Smt {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "smt",
            why: "a thread on the sibling takes execution units and cache from the measured thread",
            evidence: "processor makers' optimisation manuals: siblings share execution units and first- and second-level cache; a core with two busy threads does 1.2 to 1.3 times the work of one, so each gets about 60 %",
            unsupported_reason: "the kernel does not report siblings of any core",
        }
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Switch(sys.number::<u8>("/sys/devices/system/cpu/smt/active")? != 0))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::quiet_if(*value == KnobValue::Switch(false), "run one thread on each core while measuring")
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        parse_switch(value).map(drop)
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, value: &str) -> KnobWrites {
        const CONTROL: &str = "/sys/devices/system/cpu/smt/control";
        match sys.text(CONTROL)?.as_str() {
            "on" | "off" => setting_write(CONTROL, if parse_switch(value)? { "on" } else { "off" }),
            other => Err(Unsupported(format!("the kernel reports `{other}`"))),
        }
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        echo("off", "/sys/devices/system/cpu/smt/control")
    }
    /// Siblings that go offline lose their interrupts and cpusets, and all of them come back online.
    fn dependents(&self, sys: &SysRoot, _: &KnobTarget) -> Vec<String> {
        [cpu_settings(sys), interrupt_affinities(sys), shield::cpusets(sys), frequency_settings(sys)].concat()
    }
}
