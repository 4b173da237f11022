//! The hardware's counters: who takes them, and who may read them.

use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::sysctl;
use crate::target::KnobTarget;
use crate::writes::{KnobWrites, number_in, switch_in};

/// The watchdog that interrupts by a hardware counter.
pub struct NmiWatchdog;

impl Knob for NmiWatchdog {
    fn name(&self) -> &'static str {
        "nmi-watchdog"
    }
    fn why(&self) -> &'static str {
        "it interrupts every busy CPU regularly and takes a hardware counter away from perf"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, Softlockup detector: one counter of each CPU, one interrupt per watchdog_thresh (10 s) of busy cycles; perf has to take turns earlier"
    }
    fn targets(&self, _: &SysRoot) -> Vec<KnobTarget> {
        vec![KnobTarget::System]
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel has no such watchdog"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Switch(sys.number::<i64>("/proc/sys/kernel/nmi_watchdog")? != 0))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(*value == KnobValue::Switch(false), "switch it off while measuring")
    }
    fn writes(&self, _: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        switch_in("/proc/sys/kernel/nmi_watchdog", wanted)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        sysctl("kernel.nmi_watchdog=0")
    }
}

/// Who may read the counters.
pub struct PerfEventParanoid;

impl Knob for PerfEventParanoid {
    fn name(&self) -> &'static str {
        "perf-paranoid"
    }
    fn why(&self) -> &'static str {
        "where the counters may not be read, a change cannot be traced to cycles, instructions and misses"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, perf_event_paranoid: up to 2 a user may count an own process, up to 0 whole CPUs; some distributions add 3 and 4, which refuse all"
    }
    fn targets(&self, _: &SysRoot) -> Vec<KnobTarget> {
        vec![KnobTarget::System]
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel has no performance events"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Number(sys.number("/proc/sys/kernel/perf_event_paranoid")?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Number(..=2) => Assessment::Yes,
            KnobValue::Number(_) => {
                Assessment::Unknown { reason: "adds no noise, but without privilege nothing can be counted" }
            }
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn writes(&self, _: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        // The kernel takes any number. 3 and 4 are Debian's, Android's and Ubuntu's; elsewhere they are what 2 is.
        number_in("/proc/sys/kernel/perf_event_paranoid", self.name(), wanted, -1..=4)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        sysctl("kernel.perf_event_paranoid=1")
    }
}

/// How often perf may sample.
pub struct SampleRate;

/// Few enough interrupts to be unseen.
const MAX_QUIET_RATE: i64 = 1000;
const RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

impl Knob for SampleRate {
    fn name(&self) -> &'static str {
        "perf-sample-rate"
    }
    fn why(&self) -> &'static str {
        "a profiler that somebody runs meanwhile interrupts the measured CPUs as often as it is allowed to"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, perf_event_max_sample_rate: 100,000 interrupts a second by default, lowered by the kernel where they take more than perf_cpu_time_max_percent"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        sys.exists(RATE).then_some(KnobTarget::System).into_iter().collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel has no performance events"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Number(sys.number(RATE)?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Number(..=MAX_QUIET_RATE) => Assessment::Yes,
            KnobValue::Number(_) => Assessment::Unknown { reason: "adds no noise unless somebody profiles meanwhile" },
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn writes(&self, _: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        number_in(RATE, self.name(), wanted, 1..=i32::MAX.into())
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        sysctl("kernel.perf_event_max_sample_rate=1000")
    }
}
