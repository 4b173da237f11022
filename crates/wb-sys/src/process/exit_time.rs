//! When a process ended, whatever its parent was busy with at that moment.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::time::{ClockId, clock_gettime};

/// The stack of a thread that waits: it calls next to nothing.
const STACK: usize = 64 << 10;

/// The end time of a child, noted by a thread that does nothing but wait for it.
///
/// Whoever reaps children usually does other things too (reads telemetry, copies output) and may see an end late.
#[derive(Debug)]
pub struct ExitTimer(Arc<OnceLock<u64>>);

impl ExitTimer {
    /// Waits for the end of a child that is not reaped yet, and leaves it to be reaped.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn watch(pid: u32) -> io::Result<Self> {
        let noted = Arc::new(OnceLock::new());
        let to_note = Arc::clone(&noted);
        let wait = move || {
            if wait_for_exit(pid) {
                to_note.get_or_init(now_ns);
            }
        };
        thread::Builder::new().name(format!("end of {pid}")).stack_size(STACK).spawn(wait)?;
        Ok(Self(noted))
    }

    /// When the child ended, by CLOCK_MONOTONIC in nanoseconds. None as long as the thread has not seen it, and when the
    /// child was reaped before it could.
    pub fn ns(&self) -> Option<u64> {
        self.0.get().copied()
    }
}

/// Waits until a child has ended; false when it was reaped before that was seen.
fn wait_for_exit(pid: u32) -> bool {
    let Some(pid) = Pid::from_raw(pid.cast_signed()) else { return false };
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(Errno::INTR) => {}
            ended => return ended.is_ok(),
        }
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;
    use crate::process::reap::{ExitStatus, reap};

    #[test]
    #[expect(clippy::zombie_processes, reason = "it is reaped by its id")]
    fn an_end_is_noted_when_it_comes_and_not_when_the_child_is_reaped() {
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().unwrap();
        let end = ExitTimer::watch(child.id()).unwrap();
        assert_eq!(end.ns(), None);
        let before_ns = now_ns();
        drop(child.stdin.take());
        while end.ns().is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        let seen_ns = now_ns();
        // Its parent is busy meanwhile.
        thread::sleep(Duration::from_millis(50));
        assert_eq!(reap(child.id()).unwrap().status, ExitStatus::Exited(0));
        let ended_ns = end.ns().unwrap();
        assert!(before_ns <= ended_ns && ended_ns <= seen_ns);
    }

    #[test]
    fn a_child_that_is_gone_has_no_end_time() {
        let mut child = Command::new("/bin/true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(!wait_for_exit(pid));
    }
}
