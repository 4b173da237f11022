//! The clock that time is read from.

use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::echo;
use crate::target::KnobTarget;
use crate::writes::{KnobWrites, choice};

/// The clock that time is read from.
pub struct Clocksource;

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

impl Knob for Clocksource {
    fn name(&self) -> &'static str {
        "clocksource"
    }
    fn why(&self) -> &'static str {
        "a slow clock costs the measured program time at every look at it, and measures short things coarsely"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, Timekeeping: the TSC is read in user space within about 20 to 30 ns; HPET and ACPI PM need a system call and a slow bus, about 1 µs"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        sys.exists(format!("{FOLDER}/current_clocksource")).then_some(KnobTarget::System).into_iter().collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel does not show which clock it uses"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Choice(sys.text(format!("{FOLDER}/current_clocksource"))?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        let KnobValue::Choice(clock) = value else { return Assessment::UNEXPECTED_VALUE };
        match clock.as_str() {
            "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" | "xen" => {
                Assessment::No { advice: "read time from the processor's own counter" }
            }
            "tsc"
            | "arch_sys_counter"
            | "kvm-clock"
            | "hyperv_clocksource_tsc_page"
            | "timebase"
            | "riscv_clocksource" => Assessment::Yes,
            _ => Assessment::Unknown { reason: "not known how long this clock takes to be read" },
        }
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        let path = format!("{FOLDER}/current_clocksource");
        choice(sys, &path, &format!("{FOLDER}/available_clocksource"), wanted)
    }
    fn shell_command(&self, sys: &SysRoot, _: &[KnobTarget]) -> String {
        let available = sys.text(format!("{FOLDER}/available_clocksource")).unwrap_or_default();
        match available.split_whitespace().find(|clock| matches!(*clock, "tsc" | "kvm-clock" | "arch_sys_counter")) {
            Some(clock) => echo(clock, &format!("{FOLDER}/current_clocksource")),
            None => "dmesg | grep -i -e tsc -e clocksource   # why the kernel gave the counter up".to_owned(),
        }
    }
}
