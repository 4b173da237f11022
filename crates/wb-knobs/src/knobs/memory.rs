use wb_sys::SysRoot;

use crate::file_knob::{FileFormat, FileKnob};
use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::shell_commands::echo;
use crate::target::KnobTarget;
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrites, parse_switch, setting_write};

/// Kernel same-page merging: equal pages of different processes are merged.
pub struct SamePageMerging;

impl Knob for SamePageMerging {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "ksm",
            why: "a kernel thread constantly scans memory for equal pages, and a write to a merged page copies it first",
            evidence: "kernel documentation, Kernel Samepage Merging: ksmd scans pages_to_scan pages every sleep_millisecs, using a CPU and the caches of the workload",
            unsupported_reason: "the kernel does not merge pages",
        }
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Switch(sys.number::<u8>("/sys/kernel/mm/ksm/run")? == 1))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::quiet_if(*value == KnobValue::Switch(false), "unmerge pages and stop scanning")
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        parse_switch(value).map(drop)
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, value: &str) -> KnobWrites {
        let run: u8 = sys.number("/sys/kernel/mm/ksm/run")?;
        if run != 1 && !parse_switch(value)? {
            return setting_write("/sys/kernel/mm/ksm/run", run.to_string());
        }
        // 2 unmerges pages; 0 would leave them merged.
        setting_write("/sys/kernel/mm/ksm/run", if parse_switch(value)? { "1" } else { "2" })
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        echo("2", "/sys/kernel/mm/ksm/run")
    }
}

/// NUMA balancing: the kernel moves memory and tasks closer to each other.
pub const NUMA_BALANCING: FileKnob = FileKnob {
    description: KnobDescription {
        name: "numa-balancing",
        why: "memory is unmapped to detect accesses, and migrated: extra faults, and a speed that changes meanwhile",
        evidence: "kernel documentation, numa_balancing: hinting faults at every scan period; accesses to memory of another node take 1.5 to 2 times as long, so placement matters",
        unsupported_reason: "all memory is on one node, which leaves nothing to balance",
    },
    path: "/proc/sys/kernel/numa_balancing",
    format: FileFormat::Switch,
    targets: |sys| {
        let several = sys.numbered_entries("/sys/devices/system/node", "node").len() > 1;
        several.then_some(KnobTarget::System).into_iter().collect()
    },
    assess: |value| Assessment::quiet_if(*value == KnobValue::Switch(false), "bind the workload to nodes instead"),
    suggestion: "0",
    dependents: None,
};
