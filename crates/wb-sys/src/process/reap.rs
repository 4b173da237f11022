//! How a process ended, and what it used.

use std::time::Duration;

use libc::timeval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fork_exec;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExitStatus {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// What a process and the children that it waited for used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceUsage {
    /// CPU time in user mode, in nanoseconds.
    pub user_ns: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// The largest resident set of any one process, in bytes.
    pub max_rss: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Times that it gave up the CPU.
    pub voluntary_switches: u64,
    /// Times that the CPU was taken from it.
    pub involuntary_switches: u64,
    /// Bytes that it had read from storage.
    pub read_bytes: u64,
    /// Bytes that it had written to storage, or left to be written.
    pub written_bytes: u64,
}

impl ResourceUsage {
    /// CPU time in all, in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// A process that has ended and is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReapedChild {
    /// Its id, free for reuse from now on.
    pub pid: u32,
    /// How it ended.
    pub status: ExitStatus,
    /// What it used.
    pub usage: ResourceUsage,
}

/// The next child of the calling thread that has ended, or of the process's first thread the adopted ones too; none when
/// no other has ended yet. Children of other threads are theirs to wait for.
pub fn reap_any() -> Option<ReapedChild> {
    fork_exec::wait4(-1, libc::WNOHANG | libc::__WNOTHREAD).map(from_wait4)
}

/// Waits until this child has ended. None when there is no such child.
pub fn reap(pid: u32) -> Option<ReapedChild> {
    fork_exec::wait4(pid.cast_signed(), 0).map(from_wait4)
}

fn from_wait4((pid, status, usage): (u32, libc::c_int, libc::rusage)) -> ReapedChild {
    let status = if libc::WIFSIGNALED(status) {
        ExitStatus::Signalled(libc::WTERMSIG(status))
    } else {
        ExitStatus::Exited(libc::WEXITSTATUS(status))
    };
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    let usage = ResourceUsage {
        user_ns: nanos(usage.ru_utime),
        system_ns: nanos(usage.ru_stime),
        max_rss: count(usage.ru_maxrss) * 1024,
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
        // The kernel counts both in blocks of 512 bytes, whatever the device.
        read_bytes: count(usage.ru_inblock) * 512,
        written_bytes: count(usage.ru_oublock) * 512,
    };
    ReapedChild { pid, status, usage }
}

fn nanos(time: timeval) -> u64 {
    let whole = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    let part = Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0));
    u64::try_from((whole + part).as_nanos()).unwrap_or(u64::MAX)
}
