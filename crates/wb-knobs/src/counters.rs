//! Snapshots of the system's counters, whose differences show its activity.

use std::collections::BTreeMap;

use wb_sys::SysRoot;
use wb_sys::process::{ProcessStat, tree};
use wb_sys::telemetry::{CpuTimes, total_cpu_times};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CounterSnapshot {
    pub(crate) cpu: CpuTimes,
    pub(crate) processes: BTreeMap<u32, ProcessStat>,
    /// Thermal throttling events since boot, by CPU.
    pub(crate) throttled: BTreeMap<u32, u64>,
}

impl CounterSnapshot {
    pub fn read(root: &SysRoot) -> Self {
        Self {
            cpu: total_cpu_times(&root.text("/proc/stat").unwrap_or_default()),
            processes: tree::all(root).into_iter().map(|process| (process.pid, process)).collect(),
            throttled: throttled(root),
        }
    }

    /// The id of a running process.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.processes.iter().find(|(_, process)| process.name == name).map(|(id, _)| *id)
    }
}

pub(crate) fn is_running(root: &SysRoot, name: &str) -> bool {
    let mut processes = root.numbered_entries("/proc", "").into_iter();
    processes.any(|id| root.text(format!("/proc/{id}/comm")).is_ok_and(|comm| comm == name))
}

fn throttled(root: &SysRoot) -> BTreeMap<u32, u64> {
    let folder = "/sys/devices/system/cpu";
    let count = |cpu: u32, file: &str| root.number::<u64>(format!("{folder}/cpu{cpu}/thermal_throttle/{file}")).ok();
    let cpus = root.numbered_entries(folder, "cpu").into_iter();
    let counts = cpus.filter_map(|cpu| {
        let core = count(cpu, "core_throttle_count")?;
        Some((cpu, core.saturating_add(count(cpu, "package_throttle_count").unwrap_or(0))))
    });
    counts.collect()
}
