//! The clock that time is read from.

use wb_sys::SysRoot;

use crate::change::echo;
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::set::{Writes, choice};
use crate::target::Target;

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
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        sys.exists(format!("{FOLDER}/current_clocksource")).then_some(Target::System).into_iter().collect()
    }
    fn absent(&self) -> &'static str {
        "the kernel does not show which clock it uses"
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Choice(sys.text(format!("{FOLDER}/current_clocksource"))?))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        let Value::Choice(clock) = value else { return Quiet::STRANGE };
        match clock.as_str() {
            "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" | "xen" => {
                Quiet::No { advice: "read time from the processor's own counter" }
            }
            "tsc"
            | "arch_sys_counter"
            | "kvm-clock"
            | "hyperv_clocksource_tsc_page"
            | "timebase"
            | "riscv_clocksource" => Quiet::Yes,
            _ => Quiet::Unknown { reason: "not known how long this clock takes to be read" },
        }
    }
    fn set(&self, sys: &SysRoot, _: &Target, wanted: &str) -> Writes {
        let path = format!("{FOLDER}/current_clocksource");
        choice(sys, &path, &format!("{FOLDER}/available_clocksource"), wanted)
    }
    fn change(&self, sys: &SysRoot, _: &[Target]) -> String {
        let available = sys.text(format!("{FOLDER}/available_clocksource")).unwrap_or_default();
        match available.split_whitespace().find(|clock| matches!(*clock, "tsc" | "kvm-clock" | "arch_sys_counter")) {
            Some(clock) => echo(clock, &format!("{FOLDER}/current_clocksource")),
            None => "dmesg | grep -i -e tsc -e clocksource   # why the kernel gave the counter up".to_owned(),
        }
    }
}
