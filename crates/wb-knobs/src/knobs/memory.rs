//! Merged pages, and pages that move between nodes.

use wb_sys::SysRoot;

use crate::change::{echo, sysctl};
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::set::{Writes, one, switch, switch_in};
use crate::target::Target;

/// Whether equal pages of different processes are merged.
pub struct Merging;

impl Knob for Merging {
    fn name(&self) -> &'static str {
        "ksm"
    }
    fn why(&self) -> &'static str {
        "a thread reads memory all the time to find equal pages, and writing to a merged one copies it first"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, Kernel Samepage Merging: ksmd scans pages_to_scan pages every sleep_millisecs, on a CPU and through the caches that are measured"
    }
    fn targets(&self, _: &SysRoot) -> Vec<Target> {
        vec![Target::System]
    }
    fn absent(&self) -> &'static str {
        "the kernel does not merge pages"
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Switch(sys.number::<u8>("/sys/kernel/mm/ksm/run")? == 1))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        Quiet::when(*value == Value::Switch(false), "take merged pages apart and stop looking for them")
    }
    fn set(&self, sys: &SysRoot, _: &Target, wanted: &str) -> Writes {
        let run: u8 = sys.number("/sys/kernel/mm/ksm/run")?;
        if run != 1 && !switch(wanted)? {
            return one("/sys/kernel/mm/ksm/run", run.to_string());
        }
        // 2 takes merged pages apart; 0 would leave them.
        one("/sys/kernel/mm/ksm/run", if switch(wanted)? { "1" } else { "2" })
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
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
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        let several = sys.numbered("/sys/devices/system/node", "node").len() > 1;
        several.then_some(Target::System).into_iter().collect()
    }
    fn absent(&self) -> &'static str {
        "all memory is on one node, so that nothing is to be balanced"
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Switch(sys.number::<i64>("/proc/sys/kernel/numa_balancing")? != 0))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        Quiet::when(*value == Value::Switch(false), "bind what is measured to nodes, and leave it there")
    }
    fn set(&self, _: &SysRoot, _: &Target, wanted: &str) -> Writes {
        switch_in("/proc/sys/kernel/numa_balancing", wanted)
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        sysctl("kernel.numa_balancing=0")
    }
}
