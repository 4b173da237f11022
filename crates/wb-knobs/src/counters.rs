//! What the system had counted at one moment; two of them tell what it does.

use std::collections::BTreeMap;

use wb_sys::SysRoot;

/// The counters of one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CounterSnapshot {
    /// All CPU time, in clock ticks.
    pub(crate) ticks: u64,
    /// What the hypervisor gave to others, in clock ticks.
    pub(crate) steal: u64,
    /// The processes, by their number.
    pub(crate) processes: BTreeMap<u32, ProcessCounters>,
    /// How often CPUs were slowed down because of heat, since the start.
    pub(crate) throttled: BTreeMap<u32, u64>,
}

/// A process at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ProcessCounters {
    pub(crate) name: String,
    /// CPU time of all its threads, in clock ticks.
    pub(crate) ticks: u64,
    /// When it was started: a number can come again.
    pub(crate) started: u64,
}

impl CounterSnapshot {
    /// Reads the counters as they are now.
    pub fn read(root: &SysRoot) -> Self {
        let stat = root.text("/proc/stat").unwrap_or_default();
        let times: Vec<u64> = stat
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("cpu "))
            .map(|times| times.split_whitespace().filter_map(|time| time.parse().ok()).collect())
            .unwrap_or_default();
        Self {
            // The ninth and tenth, guests' time, are in the first two already.
            ticks: times.iter().take(8).fold(0, |sum, time| sum.saturating_add(*time)),
            steal: times.get(7).copied().unwrap_or(0),
            processes: root
                .numbered_entries("/proc", "")
                .into_iter()
                .filter_map(|id| Some((id, process(root, id)?)))
                .collect(),
            throttled: throttled(root),
        }
    }

    /// The number of a running process of this name.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.processes.iter().find(|(_, process)| process.name == name).map(|(id, _)| *id)
    }
}

/// Whether a process of this name runs.
pub(crate) fn is_running(root: &SysRoot, name: &str) -> bool {
    let mut processes = root.numbered_entries("/proc", "").into_iter();
    processes.any(|id| root.text(format!("/proc/{id}/comm")).is_ok_and(|comm| comm == name))
}

fn process(root: &SysRoot, id: u32) -> Option<ProcessCounters> {
    parse(&root.text(format!("/proc/{id}/stat")).ok()?)
}

/// Understands `/proc/PID/stat` (proc_pid_stat(5)): the name may hold anything, parentheses too.
fn parse(stat: &str) -> Option<ProcessCounters> {
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(ProcessCounters { name, ticks: field(14)?.saturating_add(field(15)?), started: field(22)? })
}

fn throttled(root: &SysRoot) -> BTreeMap<u32, u64> {
    let folder = "/sys/devices/system/cpu";
    let count = |cpu: u32, what: &str| root.number::<u64>(format!("{folder}/cpu{cpu}/thermal_throttle/{what}")).ok();
    let cpus = root.numbered_entries(folder, "cpu").into_iter();
    let counts = cpus.filter_map(|cpu| {
        let core = count(cpu, "core_throttle_count")?;
        Some((cpu, core.saturating_add(count(cpu, "package_throttle_count").unwrap_or(0))))
    });
    counts.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let process = parse("42 (a) b (c) S 1 42 42 0 -1 4194304 1 0 0 0 7 5 0 0 20 0 1 0 99 1 1").unwrap();
        assert_eq!(process, ProcessCounters { name: "a) b (c".into(), ticks: 12, started: 99 });
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}|[0-9() ]{0,80}") {
            let _ = parse(&text);
        }
    }
}
