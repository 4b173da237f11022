//! Resource usage of a thread, by the kernel's accounting.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::Nanos;

/// CPU time and context switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// CPU time in user mode, in nanoseconds.
    pub user_ns: Nanos,
    /// CPU time in the kernel, in nanoseconds.
    pub system_ns: Nanos,
    /// Voluntary context switches: the thread waited.
    pub voluntary_switches: u64,
    /// Involuntary context switches: another thread was scheduled.
    pub involuntary_switches: u64,
}

impl Usage {
    /// The usage of the calling thread since its start.
    #[allow(unsafe_code)]
    pub fn current_thread() -> Self {
        // SAFETY: the structure is all numbers, so zeroes are valid, and the kernel fills it; no library that we use
        // offers getrusage of a thread.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
            usage
        };
        let nanos = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Self {
            user_ns: nanos(usage.ru_utime),
            system_ns: nanos(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }

    #[must_use]
    pub fn split_among(self, among: u64) -> Self {
        let share = |all: u64| all / among.max(1);
        Self {
            user_ns: share(self.user_ns),
            system_ns: share(self.system_ns),
            voluntary_switches: share(self.voluntary_switches),
            involuntary_switches: share(self.involuntary_switches),
        }
    }

    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            user_ns: self.user_ns - before.user_ns,
            system_ns: self.system_ns - before.system_ns,
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
        }
    }

    pub fn add(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}
