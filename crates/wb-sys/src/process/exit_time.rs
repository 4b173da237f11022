//! The end time of a process, recorded even while its parent is busy.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::time::{ClockId, clock_gettime};

/// Stack size of a waiting thread, in bytes: it calls next to nothing.
const STACK: usize = 64 << 10;

/// The end time of a child, recorded by a thread that only waits for it.
///
/// The thread that reaps children also does other work (reads telemetry, copies output) and may notice an end late.
#[derive(Debug)]
pub struct ExitTimer(Arc<OnceLock<u64>>);

impl ExitTimer {
    /// Starts a thread that waits for the end of a child without reaping it. The child must not be reaped yet.
    ///
    /// # Errors
    /// When the thread cannot be created.
    pub fn watch(pid: u32) -> io::Result<Self> {
        let end_ns = Arc::new(OnceLock::new());
        let recorder = Arc::clone(&end_ns);
        let wait = move || {
            if wait_for_exit(pid) {
                recorder.get_or_init(now_ns);
            }
        };
        // `make bench ARGS="'plain spawn'"` limits how much later than a plain wait this is.
        thread::Builder::new().name(format!("end of {pid}")).stack_size(STACK).spawn(wait)?;
        Ok(Self(end_ns))
    }

    /// When the child ended, by CLOCK_MONOTONIC in nanoseconds. None until the thread has noticed it, and when the
    /// child was reaped before that.
    pub fn ns(&self) -> Option<u64> {
        self.0.get().copied()
    }
}

/// Waits until a child has ended; false when it was reaped before.
fn wait_for_exit(pid: u32) -> bool {
    let Some(pid) = Pid::from_raw(pid.cast_signed()) else { return false };
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(Errno::INTR) => {}
            result => return result.is_ok(),
        }
    }
}

/// The time by CLOCK_MONOTONIC, in nanoseconds.
pub(super) fn now_ns() -> u64 {
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
    #[expect(clippy::zombie_processes, reason = "the child is reaped by its id")]
    fn the_end_time_is_that_of_the_exit_not_of_the_reaping() {
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().unwrap();
        let end = ExitTimer::watch(child.id()).unwrap();
        assert_eq!(end.ns(), None);
        let before_ns = now_ns();
        drop(child.stdin.take());
        while end.ns().is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        let seen_ns = now_ns();
        // The parent is busy meanwhile.
        thread::sleep(Duration::from_millis(50));
        assert_eq!(reap(child.id()).unwrap().status, ExitStatus::Exited(0));
        let ended_ns = end.ns().unwrap();
        assert!(before_ns <= ended_ns && ended_ns <= seen_ns);
    }

    #[test]
    fn a_reaped_child_has_no_end_time() {
        let mut child = Command::new("/bin/true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(!wait_for_exit(pid));
    }
}
