//! Processes that tests wait for, suspend and kill.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Waits for a condition; the timeout of 90 s is for machines under load.
pub fn wait_until(description: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(90), "timed out waiting for {description}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

/// The states of all threads of a process, such as `S`; empty if it does not exist.
fn thread_states(pid: u32) -> Vec<char> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next()).collect()
}

/// The children of all threads of a process.
pub fn children(pid: u32) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

/// Suspends a process and waits until all of its threads stand still: until one of them takes the signal, the others
/// go on, and may react to what happens next.
pub fn suspend(child: &Child) {
    // A process that has ended already cannot be signalled.
    let _ = kill_process(Pid::from_child(child), Signal::STOP);
    let is_still = || thread_states(child.id()).iter().all(|state| matches!(state, 'T' | 't' | 'Z' | 'X'));
    wait_until("a process to be suspended", is_still);
}

/// Kills a process, and waits for its end: the kernel may take a while to end all of its threads.
fn kill(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
    let raw = pid.as_raw_nonzero().get().cast_unsigned();
    wait_until("the end of a killed process", || thread_states(raw).iter().all(|state| matches!(state, 'Z' | 'X')));
}

/// Kills a suspended process after its children, which it must have, so that neither reacts to the death of the other.
/// The children are not suspended: they would continue when their process group becomes orphaned.
pub fn kill_after_children(mut child: Child) {
    let children = children(child.id());
    assert!(!children.is_empty(), "process {} has no children", child.id());
    children.into_iter().for_each(kill);
    child.kill().unwrap();
    child.wait().unwrap();
}
