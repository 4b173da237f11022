//! Clocks: the time of day, and how long the machine was suspended.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Seconds since the epoch, by the clock of the system. It may be set meanwhile: do not compute durations from it.
pub fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// How long the machine has been suspended since it booted: what CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does not.
pub fn suspended_time() -> Duration {
    let time = |clock| {
        let time = clock_gettime(clock);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
    };
    let monotonic = time(ClockId::Monotonic);
    time(ClockId::Boottime).saturating_sub(monotonic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_runs_is_not_suspended() {
        let before = suspended_time();
        std::thread::sleep(Duration::from_millis(20));
        assert!(suspended_time().saturating_sub(before) < Duration::from_millis(20));
        assert!(unix_time() > 1.7e9);
    }
}
