//! What a worker counts, each by itself, until the control thread collects it at the end of a period.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

/// The longest latency that is told apart; longer ones count as this.
const MAX_LATENCY_US: u64 = 600_000_000;

/// An empty histogram of latencies in microseconds, with an error of at most 1 %.
pub(crate) fn empty_histogram() -> Histogram<u32> {
    #[expect(clippy::expect_used, reason = "the bounds are constants")]
    Histogram::new_with_bounds(1, MAX_LATENCY_US, 2).expect("valid bounds")
}

/// A part of a request whose CPU time is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    Read,
    Touch,
    Hash,
    /// Falling asleep and waking up, and what is between two requests.
    Sleep,
}

impl Stage {
    pub(crate) const ALL: [Self; 4] = [Self::Read, Self::Touch, Self::Hash, Self::Sleep];
}

/// The counters of one worker, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct WorkerCounters {
    /// Locked by the worker once a request, and by the control thread once a period: hardly ever by both.
    latencies: Mutex<Histogram<u32>>,
    cpu_nanos: [AtomicU64; Stage::ALL.len()],
    in_flight: AtomicBool,
}

impl WorkerCounters {
    pub(crate) fn new() -> Self {
        Self {
            latencies: Mutex::new(empty_histogram()),
            cpu_nanos: Default::default(),
            in_flight: AtomicBool::new(false),
        }
    }

    pub(crate) fn set_in_flight(&self, in_flight: bool) {
        self.in_flight.store(in_flight, Ordering::Relaxed);
    }

    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn record(&self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.lock_latencies().saturating_record(micros.max(1));
    }

    /// CPU time since the start.
    pub(crate) fn cpu_nanos(&self, stage: Stage) -> u64 {
        self.cpu_nanos[stage as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn drain_into(&self, total: &mut Histogram<u32>) {
        let mut latencies = self.lock_latencies();
        if !latencies.is_empty() {
            // Both have the same bounds, so that every value fits.
            let added = total.add(&*latencies);
            debug_assert!(added.is_ok());
            latencies.reset();
        }
    }

    fn lock_latencies(&self) -> MutexGuard<'_, Histogram<u32>> {
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Attributes the CPU time of a worker's thread to stages, which follow each other. Reading it is a system call, so it
/// is read once for each stage.
#[derive(Debug)]
pub(crate) struct StageClock {
    counters: Arc<WorkerCounters>,
    /// CPU time of the thread at the end of the last stage.
    last: u64,
}

impl StageClock {
    /// The thread must not have used any CPU time yet.
    pub(crate) fn new(counters: Arc<WorkerCounters>) -> Self {
        Self { counters, last: 0 }
    }

    /// Ends a stage, and begins with the next one. Called on the worker's thread.
    pub(crate) fn end(&mut self, stage: Stage) {
        let now = thread_cpu_nanos();
        self.counters.cpu_nanos[stage as usize].fetch_add(now.saturating_sub(self.last), Ordering::Relaxed);
        self.last = now;
    }
}

pub(crate) fn thread_cpu_nanos() -> u64 {
    cpu_nanos(ClockId::ThreadCPUTime)
}

pub(crate) fn process_cpu_nanos() -> u64 {
    cpu_nanos(ClockId::ProcessCPUTime)
}

fn cpu_nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // CPU times are never negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_collected_once() {
        let counters = WorkerCounters::new();
        counters.record(Duration::from_millis(20));
        counters.record(Duration::from_secs(100_000));
        let mut total = empty_histogram();
        counters.drain_into(&mut total);
        counters.drain_into(&mut total);
        assert_eq!(total.len(), 2);
        assert!(total.value_at_quantile(0.5).abs_diff(20_000) <= 200);
    }

    #[test]
    fn cpu_time_is_that_of_the_thread_and_of_its_stage() {
        let counters = Arc::new(WorkerCounters::new());
        let mut clock = StageClock::new(counters.clone());
        clock.end(Stage::Hash);
        std::thread::sleep(Duration::from_millis(30));
        clock.end(Stage::Sleep);
        assert!((1..20_000_000).contains(&counters.cpu_nanos(Stage::Sleep)));
        assert_eq!(counters.cpu_nanos(Stage::Read), 0);
    }
}
