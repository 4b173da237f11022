//! Whether the run time of a command depends on its work.

/// Minimum growth of the run time beyond the probe, relative to the growth of the work.
const MIN_TIME_SHARE: f64 = 1.0 / 16.0;
/// Differences of CPU time in seconds above this are not explained by the start of a process.
const MIN_CPU_DIFFERENCE: f64 = 0.01;

#[derive(Debug, Clone, Copy)]
pub(super) struct RunTime {
    /// Seconds from start to end.
    pub(super) elapsed: f64,
    /// CPU seconds of all threads.
    pub(super) cpu: f64,
}

/// Whether a run took longer than the `probe`, which did a `part` of its `work`, by the clock or in CPU time: other
/// processes delay the probe, but do not add to its CPU time.
pub(super) fn follows_work((work, run): (u64, RunTime), (part, probe): (u64, RunTime)) -> bool {
    time_follows_work((work, run.elapsed), (part, probe.elapsed))
        || run.cpu >= probe.cpu + MIN_CPU_DIFFERENCE && time_follows_work((work, run.cpu), (part, probe.cpu))
}

/// Whether seconds grow with the work. The start of the process may be a large part of both times.
pub(super) fn time_follows_work((work, seconds): (u64, f64), (part, probe): (u64, f64)) -> bool {
    let extra = work as f64 / part as f64 - 1.0;
    seconds >= probe * (1.0 + extra * MIN_TIME_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(elapsed: f64, cpu: f64) -> RunTime {
        RunTime { elapsed, cpu }
    }

    #[test]
    fn a_delayed_probe_is_recognised_by_its_cpu_time() {
        assert!(follows_work((128, run(0.2, 0.2)), (32, run(0.05, 0.05))));
        assert!(follows_work((128, run(0.2, 0.2)), (32, run(0.9, 0.05))));
        assert!(!follows_work((128, run(0.2, 0.2)), (32, run(0.2, 0.2))));
    }

    #[test]
    fn cpu_time_of_the_start_alone_does_not_follow_the_work() {
        assert!(!follows_work((128, run(1.0, 0.008)), (32, run(1.0, 0.002))));
    }
}
