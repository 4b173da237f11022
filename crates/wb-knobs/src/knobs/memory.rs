//! Merged pages, and pages that move between nodes.

use wb_sys::SysRoot;

use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::{echo, sysctl};
use crate::target::KnobTarget;
use crate::writes::{KnobWrites, parse_switch, setting_write, switch_in};

/// Whether equal pages of different processes are merged.
pub struct SamePageMerging;

impl Knob for SamePageMerging {
    fn name(&self) -> &'static str {
        "ksm"
    }
    fn why(&self) -> &'static str {
        "a thread reads memory all the time to find equal pages, and writing to a merged one copies it first"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, Kernel Samepage Merging: ksmd scans pages_to_scan pages every sleep_millisecs, on a CPU and through the caches that are measured"
    }
    fn targets(&self, _: &SysRoot) -> Vec<KnobTarget> {
        vec![KnobTarget::System]
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel does not merge pages"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Switch(sys.number::<u8>("/sys/kernel/mm/ksm/run")? == 1))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(*value == KnobValue::Switch(false), "take merged pages apart and stop looking for them")
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        let run: u8 = sys.number("/sys/kernel/mm/ksm/run")?;
        if run != 1 && !parse_switch(wanted)? {
            return setting_write("/sys/kernel/mm/ksm/run", run.to_string());
        }
        // 2 takes merged pages apart; 0 would leave them.
        setting_write("/sys/kernel/mm/ksm/run", if parse_switch(wanted)? { "1" } else { "2" })
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        echo("2", "/sys/kernel/mm/ksm/run")
    }
}

/// Whether the kernel moves memory and tasks to each other.
pub struct NumaBalancing;

impl Knob for NumaBalancing {
    fn name(&self) -> &'static str {
        "numa-balancing"
    }
    fn why(&self) -> &'static str {
        "memory is unmapped to see who touches it and moved meanwhile: extra faults, and a speed that changes on the way"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, numa_balancing: hinting faults at every scan period; memory of another node takes 1.5 to 2 times as long, so where it lies decides"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let several = sys.numbered_entries("/sys/devices/system/node", "node").len() > 1;
        several.then_some(KnobTarget::System).into_iter().collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "all memory is on one node, so that nothing is to be balanced"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Switch(sys.number::<i64>("/proc/sys/kernel/numa_balancing")? != 0))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(*value == KnobValue::Switch(false), "bind what is measured to nodes, and leave it there")
    }
    fn writes(&self, _: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        switch_in("/proc/sys/kernel/numa_balancing", wanted)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        sysctl("kernel.numa_balancing=0")
    }
}
