use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::shell_commands::echo;
use crate::target::KnobTarget;
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrites, choice, listed_options};

/// The clock source that time is read from.
pub struct Clocksource;

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

impl Knob for Clocksource {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "clocksource",
            why: "a slow clock costs the measured program time at every reading, and times short intervals inaccurately",
            evidence: "kernel documentation, Timekeeping: the TSC is read in user space within about 20 to 30 ns; HPET and ACPI PM need a system call and a slow bus, about 1 µs",
            unsupported_reason: "the kernel does not report its clock source",
        }
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        sys.exists(format!("{FOLDER}/current_clocksource")).then_some(KnobTarget::System).into_iter().collect()
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Choice(sys.text(format!("{FOLDER}/current_clocksource"))?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        let KnobValue::Choice(clock) = value else { return Assessment::UNEXPECTED_VALUE };
        match clock.as_str() {
            "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" | "xen" => {
                Assessment::Noisy { advice: "read time from the processor's own counter" }
            }
            "tsc"
            | "arch_sys_counter"
            | "kvm-clock"
            | "hyperv_clocksource_tsc_page"
            | "timebase"
            | "riscv_clocksource" => Assessment::Quiet,
            _ => Assessment::Unknown { reason: "unknown cost of reading this clock" },
        }
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        choice(&format!("{FOLDER}/current_clocksource"), &self.offered_values(sys, target), value)
    }
    fn offered_values(&self, sys: &SysRoot, _: &KnobTarget) -> Vec<String> {
        listed_options(sys, &format!("{FOLDER}/available_clocksource"))
    }
    fn shell_command(&self, sys: &SysRoot, _: &[KnobTarget]) -> String {
        let available = sys.text(format!("{FOLDER}/available_clocksource")).unwrap_or_default();
        match available.split_whitespace().find(|clock| matches!(*clock, "tsc" | "kvm-clock" | "arch_sys_counter")) {
            Some(clock) => echo(clock, &format!("{FOLDER}/current_clocksource")),
            None => "dmesg | grep -i -e tsc -e clocksource   # why the kernel rejected the counter".to_owned(),
        }
    }
}
