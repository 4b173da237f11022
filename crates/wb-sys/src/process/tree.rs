//! Who descends from whom: to find what belongs together where no cgroup says it, and to end it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::SysRoot;

/// The length of a clock tick, in nanoseconds: `/proc` counts in hundredths of a second on every
/// architecture that we build for.
pub const TICK_NS: u64 = 10_000_000;

/// A process as `/proc/PID/stat` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// Its id.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// The kernel's letter for its state: `R`, `S`, `Z`.
    pub state: char,
    /// When it started, in clock ticks since boot: with the id, unique on this boot.
    pub started: u64,
    /// CPU time of it and the children that it waited for, in clock ticks.
    pub cpu_ticks: u64,
}

impl ProcessStat {
    /// Whether it has ended and only waits to be reaped.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Reads a line of `/proc/PID/stat`. The name in it may hold anything, parentheses and spaces too.
pub fn parse_stat(text: &str) -> Option<ProcessStat> {
    let (pid, rest) = text.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let id = |at: usize| fields.get(at)?.parse::<u32>().ok();
    let signed = |at: usize| fields.get(at)?.parse::<i64>().ok().map(|ticks| u64::try_from(ticks).unwrap_or(0));
    Some(ProcessStat {
        pid: pid.trim().parse().ok()?,
        state: fields.first()?.chars().next()?,
        parent: id(1)?,
        group: id(2)?,
        session: id(3)?,
        cpu_ticks: number(11)?.saturating_add(number(12)?).saturating_add(signed(13)?).saturating_add(signed(14)?),
        started: number(19)?,
    })
}

/// One process, if it is there.
pub fn read_stat(root: &SysRoot, pid: u32) -> Option<ProcessStat> {
    parse_stat(&root.text(format!("/proc/{pid}/stat")).ok()?)
}

/// Every process that can be seen.
pub fn all(root: &SysRoot) -> Vec<ProcessStat> {
    root.numbered_entries("/proc", "").into_iter().filter_map(|pid| read_stat(root, pid)).collect()
}

/// Those of `entries` that descend from any of `roots`, which are among them where they are alive.
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
            found.push(*entry);
            next.extend(children.get(&entry.pid).into_iter().flatten());
        }
    }
    found
}

/// The value of a variable in the environment that a process was started with.
pub fn initial_variable(root: &SysRoot, pid: u32, variable: &str) -> Option<String> {
    let bytes = root.bytes(format!("/proc/{pid}/environ")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.split('\0').find_map(|line| Some(line.strip_prefix(variable)?.strip_prefix('=')?.to_owned()))
}

/// The folder that a process is in, where that may be known.
pub fn working_folder(root: &SysRoot, pid: u32) -> Option<PathBuf> {
    fs::read_link(root.path(format!("/proc/{pid}/cwd")).ok()?).ok()
}

/// Sends a signal to exactly this process, never to another that got its id since. False when it
/// is gone already, or is not ours to signal.
pub fn signal(entry: &ProcessStat, signal: Signal) -> bool {
    let Some(descriptor) = open(entry) else { return false };
    pidfd_send_signal(&descriptor, signal).is_ok()
}

/// A descriptor of exactly this process: opened first, then the start compared, so that no reuse of
/// the id can slip between.
fn open(wanted: &ProcessStat) -> Option<OwnedFd> {
    let pid = Pid::from_raw(wanted.pid.cast_signed())?;
    let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let now = read_stat(&SysRoot::real(), wanted.pid)?;
    (now.started == wanted.started).then_some(descriptor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn made(pid: u32, parent: u32) -> ProcessStat {
        ProcessStat { pid, parent, group: pid, session: pid, state: 'S', started: 0, cpu_ticks: 0 }
    }

    #[test]
    fn a_name_with_parentheses_and_spaces_is_no_trap() {
        let line = "7 (a) R 1 (b) S 3 5 6 0 -1 4194560 1 2 3 4 10 20 30 -1 20 0 1 0 99 1000 10";
        let read = parse_stat(line).unwrap();
        assert_eq!((read.pid, read.parent, read.group, read.session, read.state), (7, 3, 5, 6, 'S'));
        assert_eq!((read.started, read.cpu_ticks), (99, 60));
    }

    #[test]
    fn this_process_descends_from_itself_and_its_parent() {
        let root = SysRoot::real();
        let me = std::process::id();
        let parent = read_stat(&root, me).unwrap().parent;
        let found = descendants(&all(&root), &BTreeSet::from([parent]));
        assert!(found.iter().any(|entry| entry.pid == me));
        assert!(found.iter().any(|entry| entry.pid == parent));
    }

    #[test]
    fn a_family_is_found_whole_and_a_circle_ends() {
        let entries = [made(1, 0), made(2, 1), made(3, 2), made(4, 1), made(5, 6), made(6, 5)];
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

    #[test]
    fn a_process_with_another_start_is_not_signalled() {
        let mut me = read_stat(&SysRoot::real(), std::process::id()).unwrap();
        me.started += 1;
        assert!(!signal(&me, Signal::KILL));
    }

    #[test]
    fn what_it_was_started_with_is_seen() {
        let path = std::env::var("PATH").unwrap();
        assert_eq!(initial_variable(&SysRoot::real(), std::process::id(), "PATH"), Some(path));
        assert_eq!(initial_variable(&SysRoot::real(), std::process::id(), "PAT"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9]{0,3} ?\\(?[a-z) (]{0,6}\\)? ?([A-Z0-9 -]){0,60}", any: String) {
            let _ = parse_stat(&text);
            let _ = parse_stat(&any);
        }
    }
}
