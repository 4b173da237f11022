//! Exit status and resource usage of ended processes.

use std::time::Duration;

use libc::timeval;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fork_exec;
use crate::cgroup::CpuTimes;

/// Exit status of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExitStatus {
    /// It exited with this status.
    Exited(i32),
    /// It was killed by this signal.
    Signalled(i32),
}

/// Resource usage of a process and of the children that it waited for. CPU time and memory are also those of its other
/// descendants up to its end, where it ran in a control group of its own; the memory of one that ended before it in a
/// session of its own is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceUsage {
    /// CPU time in user mode, in nanoseconds.
    pub user_ns: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// Largest resident set size of any one process, in bytes.
    pub max_rss: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that required I/O.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage, or left in the page cache to be written.
    pub written_bytes: u64,
}

impl ResourceUsage {
    /// Sets the CPU time to the CPU time of its control group, if that is more: it includes descendants that nobody
    /// waited for.
    #[must_use]
    pub fn with_group(self, times: Option<CpuTimes>) -> Self {
        match times {
            Some(CpuTimes { user_ns, system_ns }) if user_ns.saturating_add(system_ns) > self.cpu_ns() => {
                Self { user_ns, system_ns, ..self }
            }
            _ => self,
        }
    }

    /// Includes the memory of descendants that nobody waited for, given the largest resident set of them.
    #[must_use]
    pub fn with_max_rss(self, max_rss: u64) -> Self {
        Self { max_rss: self.max_rss.max(max_rss), ..self }
    }

    /// Total CPU time, in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// A child that has ended and was reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReapedChild {
    /// Process id, free for reuse.
    pub pid: u32,
    pub status: ExitStatus,
    pub usage: ResourceUsage,
}

/// Finds a child of the calling thread that has ended and is not reaped, without waiting; None when there is none. The
/// main thread also finds adopted children. Children of other threads are left to those.
pub fn find_ended() -> Option<u32> {
    fork_exec::find_ended()
}

/// Waits until this child has ended, and reaps it. None when there is no such child.
pub fn reap(pid: u32) -> Option<ReapedChild> {
    fork_exec::wait4(pid.cast_signed(), 0).map(from_wait4)
}

/// Whether a child of this process has ended and is not reaped yet.
pub fn has_ended(pid: u32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error means that it is no child, or reaped.
    Pid::from_raw(pid.cast_signed())
        .is_some_and(|pid| waitid(WaitId::Pid(pid), options).is_ok_and(|ended| ended.is_some()))
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
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    let microseconds = Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0));
    u64::try_from((seconds + microseconds).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_has_ended_until_it_is_reaped() {
        let mut child = Command::new("/bin/cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        assert!(!has_ended(pid));
        drop(child.stdin.take());
        while !has_ended(pid) {
            std::thread::yield_now();
        }
        assert_eq!(find_ended(), Some(pid));
        assert!(child.wait().unwrap().success());
        assert!(!has_ended(pid));
    }
}
