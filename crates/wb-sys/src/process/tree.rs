//! The process tree, used to find and kill related processes where no cgroup groups them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::SysRoot;

/// The length of a clock tick, in nanoseconds: `/proc` counts in hundredths of a second (USER_HZ) on every
/// supported architecture.
pub const TICK_NS: u64 = 10_000_000;

/// The flag of kernel threads (PF_KTHREAD of the kernel's sched.h).
const PF_KTHREAD: u64 = 0x0020_0000;

/// A process or thread as reported by `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStat {
    pub pid: u32,
    /// Name, truncated by the kernel to 15 characters for programs.
    pub name: String,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    /// State, as the kernel's letter: `R`, `S`, `Z`.
    pub state: char,
    /// Start time, in clock ticks since boot: with the id, unique during this boot.
    pub started: u64,
    /// CPU time of the process, in clock ticks.
    pub own_cpu_ticks: u64,
    /// CPU time of the process and of the children that it waited for, in clock ticks.
    pub cpu_ticks: u64,
    /// Whether it is a thread of the kernel.
    pub is_kernel_thread: bool,
}

impl ProcessStat {
    /// Whether the process has ended and waits to be reaped.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Parses a line of `/proc/PID/stat` (proc_pid_stat(5)). The name in it may contain any character, including
/// parentheses and spaces.
pub fn parse_stat(text: &str) -> Option<ProcessStat> {
    let (pid, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let id = |index: usize| fields.get(index)?.parse::<u32>().ok();
    let signed = |index: usize| fields.get(index)?.parse::<i64>().ok().map(|ticks| u64::try_from(ticks).unwrap_or(0));
    let own_cpu_ticks = number(11)?.saturating_add(number(12)?);
    Some(ProcessStat {
        pid: pid.trim().parse().ok()?,
        name: name.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: id(1)?,
        group: id(2)?,
        session: id(3)?,
        own_cpu_ticks,
        cpu_ticks: own_cpu_ticks.saturating_add(signed(13)?).saturating_add(signed(14)?),
        is_kernel_thread: number(6)? & PF_KTHREAD != 0,
        started: number(19)?,
    })
}

/// Reads one process, if it exists.
pub fn read_stat(root: &SysRoot, pid: u32) -> Option<ProcessStat> {
    parse_stat(&root.text(format!("/proc/{pid}/stat")).ok()?)
}

/// The largest resident set that a process has had since it executed its program, in bytes.
pub fn max_rss(root: &SysRoot, pid: u32) -> Option<u64> {
    let status = root.text(format!("/proc/{pid}/status")).ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(kib.split_whitespace().next()?.parse::<u64>().ok()?.saturating_mul(1024))
}

/// The effective user of a process, by number. The owner of its folder in `/proc` may be root instead.
pub fn effective_user(root: &SysRoot, pid: u32) -> Option<u32> {
    let status = root.text(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

/// All visible processes.
pub fn all(root: &SysRoot) -> Vec<ProcessStat> {
    root.numbered_entries("/proc", "").into_iter().filter_map(|pid| read_stat(root, pid)).collect()
}

/// The entries that descend from any of `roots`, including the roots that are alive.
pub fn descendants(entries: &[ProcessStat], roots: &BTreeSet<u32>) -> Vec<ProcessStat> {
    let mut children: BTreeMap<u32, Vec<&ProcessStat>> = BTreeMap::new();
    for entry in entries {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut next: Vec<&ProcessStat> = entries.iter().filter(|entry| roots.contains(&entry.pid)).collect();
    while let Some(entry) = next.pop() {
        if seen.insert(entry.pid) {
            found.push(entry.clone());
            next.extend(children.get(&entry.pid).into_iter().flatten());
        }
    }
    found
}

/// The value of a variable in the initial environment of a process.
pub fn initial_variable(root: &SysRoot, pid: u32, variable: &str) -> Option<String> {
    let bytes = root.bytes(format!("/proc/{pid}/environ")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.split('\0').find_map(|line| Some(line.strip_prefix(variable)?.strip_prefix('=')?.to_owned()))
}

/// The working folder of a process, where permissions allow to read it.
pub fn working_folder(root: &SysRoot, pid: u32) -> Option<PathBuf> {
    fs::read_link(root.path(format!("/proc/{pid}/cwd")).ok()?).ok()
}

/// Sends a signal to exactly this process, never to a later one with the same id. False when the process no longer
/// exists or may not be signalled.
pub fn signal(entry: &ProcessStat, signal: Signal) -> bool {
    let Some(descriptor) = open(entry) else { return false };
    pidfd_send_signal(&descriptor, signal).is_ok()
}

/// Opens a descriptor of exactly this process. It is opened before the start times are compared, so that a reuse of the
/// id in between is noticed.
fn open(target: &ProcessStat) -> Option<OwnedFd> {
    let pid = Pid::from_raw(target.pid.cast_signed())?;
    let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let now = read_stat(&SysRoot::real(), target.pid)?;
    (now.started == target.started).then_some(descriptor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn process(pid: u32, parent: u32) -> ProcessStat {
        parse_stat(&format!("{pid} (p) S {parent} {pid} {pid} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 0")).unwrap()
    }

    // A program may have any name: the last `)` ends it, not the first.
    #[test]
    fn a_name_with_parentheses_and_spaces_is_parsed() {
        let line = "7 (a) R 1 (b) S 3 5 6 0 -1 4194560 1 2 3 4 10 20 30 -1 20 0 1 0 99 1000 10";
        let read = parse_stat(line).unwrap();
        assert_eq!((read.pid, read.parent, read.group, read.session, read.state), (7, 3, 5, 6, 'S'));
        assert_eq!((read.name.as_str(), read.is_kernel_thread), ("a) R 1 (b", false));
        assert_eq!((read.started, read.own_cpu_ticks, read.cpu_ticks), (99, 30, 60));
        assert!(parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 9").unwrap().is_kernel_thread);
    }

    #[test]
    fn this_process_is_a_descendant_of_its_parent() {
        let root = SysRoot::real();
        let me = std::process::id();
        let parent = read_stat(&root, me).unwrap().parent;
        let found = descendants(&all(&root), &BTreeSet::from([parent]));
        assert!(found.iter().any(|entry| entry.pid == me));
        assert!(found.iter().any(|entry| entry.pid == parent));
    }

    #[test]
    fn all_descendants_are_found_and_cycles_terminate() {
        let entries = [process(1, 0), process(2, 1), process(3, 2), process(4, 1), process(5, 6), process(6, 5)];
        let pids = |roots: &[u32]| {
            let mut pids: Vec<u32> =
                descendants(&entries, &roots.iter().copied().collect()).iter().map(|entry| entry.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(&[2]), [2, 3]);
        assert_eq!(pids(&[1]), [1, 2, 3, 4]);
        assert_eq!(pids(&[5]), [5, 6]);
        assert!(pids(&[9]).is_empty());
    }

    // The id of a process that has ended may be that of another one.
    #[test]
    fn a_process_with_another_start_is_not_signalled() {
        let mut me = read_stat(&SysRoot::real(), std::process::id()).unwrap();
        me.started += 1;
        assert!(!signal(&me, Signal::KILL));
    }

    #[test]
    fn the_initial_environment_is_read() {
        let path = std::env::var("PATH").unwrap();
        assert_eq!(initial_variable(&SysRoot::real(), std::process::id(), "PATH"), Some(path));
        assert_eq!(initial_variable(&SysRoot::real(), std::process::id(), "PAT"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(text in "[0-9]{0,3} ?\\(?[a-z) (]{0,6}\\)? ?([A-Z0-9 -]){0,60}", any: String) {
            let _ = parse_stat(&text);
            let _ = parse_stat(&any);
        }
    }
}
