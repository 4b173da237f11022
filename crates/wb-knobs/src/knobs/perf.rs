//! Hardware performance counters: their use by the NMI watchdog, and access to them.

use crate::file_knob::{FileFormat, FileKnob};
use crate::knob::{Assessment, KnobDescription, KnobValue};
use crate::target;

/// The NMI watchdog, which uses a hardware counter.
pub const NMI_WATCHDOG: FileKnob = FileKnob {
    description: KnobDescription {
        name: "nmi-watchdog",
        why: "it regularly interrupts every busy CPU and occupies a hardware counter that perf lacks",
        evidence: "kernel documentation, Softlockup detector: one counter of each CPU, one interrupt per watchdog_thresh (10 s) of busy cycles; perf has to multiplex its counters earlier",
        unsupported_reason: "the kernel has no such watchdog",
    },
    path: "/proc/sys/kernel/nmi_watchdog",
    format: FileFormat::Switch,
    targets: target::system,
    assess: |value| Assessment::quiet_if(*value == KnobValue::Switch(false), "switch it off while measuring"),
    suggestion: "0",
    dependents: None,
};

/// The privileges required to read the counters.
pub const PERF_EVENT_PARANOID: FileKnob = FileKnob {
    description: KnobDescription {
        name: "perf-paranoid",
        why: "without access to the counters, a change cannot be traced to cycles, instructions and misses",
        evidence: "kernel documentation, perf_event_paranoid: up to 2 users may count their own processes, up to 0 whole CPUs; some distributions add 3 and 4, which refuse all",
        unsupported_reason: "the kernel has no performance events",
    },
    path: "/proc/sys/kernel/perf_event_paranoid",
    // The kernel accepts any number. 3 and 4 are specific to Debian, Android and Ubuntu; elsewhere they act like 2.
    format: FileFormat::Number(-1..=4),
    targets: target::system,
    assess: |value| match value {
        KnobValue::Number(..=2) => Assessment::Quiet,
        KnobValue::Number(_) => {
            Assessment::Unknown { reason: "adds no noise, but counters are unavailable without privileges" }
        }
        _ => Assessment::UNEXPECTED_VALUE,
    },
    suggestion: "1",
    dependents: None,
};

/// A rate at which interrupts have no noticeable effect, per second.
const MAX_QUIET_RATE: i64 = 1000;
const RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

pub const SAMPLE_RATE: FileKnob = FileKnob {
    description: KnobDescription {
        name: "perf-sample-rate",
        why: "a profiler that runs meanwhile interrupts the measured CPUs up to this rate",
        evidence: "kernel documentation, perf_event_max_sample_rate: 100,000 interrupts a second by default, lowered by the kernel where they take more than perf_cpu_time_max_percent",
        unsupported_reason: "the kernel has no performance events",
    },
    path: RATE,
    format: FileFormat::Number(1..=i32::MAX as i64),
    targets: |sys| target::system_with(sys, RATE),
    assess: |value| match value {
        KnobValue::Number(..=MAX_QUIET_RATE) => Assessment::Quiet,
        KnobValue::Number(_) => Assessment::Unknown { reason: "adds no noise unless a profiler runs meanwhile" },
        _ => Assessment::UNEXPECTED_VALUE,
    },
    suggestion: "1000",
    dependents: None,
};
