//! Time on the monotonic clock, in nanoseconds. All processes of a machine share it.

use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// A point on the monotonic clock, or a length of time, in nanoseconds.
pub type Nanos = u64;

/// Now.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU time that this thread has had.
pub fn thread_cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A duration in nanoseconds; what is longer than 584 years is cut.
pub fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sleeps until a point in time, or until a signal.
pub fn sleep_until(point: Nanos) {
    let request = Timespec { tv_sec: (point / 1_000_000_000) as i64, tv_nsec: (point % 1_000_000_000) as _ };
    // A signal ends it early, and the caller looks why.
    let _: Result<(), Errno> = clock_nanosleep_absolute(ClockId::Monotonic, &request);
}
