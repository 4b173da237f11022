//! The monotonic clock, in nanoseconds. All processes of a machine share it.

use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// A point on the monotonic clock, or a duration, in nanoseconds.
pub type Nanos = u64;

pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub fn thread_cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A duration in nanoseconds, saturating at 584 years.
pub fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Interval between polls: an eighth of the wait so far. Quick events are noticed at once, and slow ones cost little.
pub fn growing_interval(elapsed: Nanos, (shortest, longest): (Nanos, Nanos)) -> Nanos {
    (elapsed / 8).clamp(shortest, longest)
}

/// Sleeps until a point in time, or until a signal arrives.
pub fn sleep_until(point: Nanos) {
    let request = Timespec { tv_sec: (point / 1_000_000_000) as i64, tv_nsec: (point % 1_000_000_000) as _ };
    // A signal ends it early; the caller checks why.
    let _: Result<(), Errno> = clock_nanosleep_absolute(ClockId::Monotonic, &request);
}
