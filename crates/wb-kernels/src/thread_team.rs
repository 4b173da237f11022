//! A team of threads, each pinned to a CPU, that start together and are timed together.

use crate::{Error, cpus};
use std::sync::atomic::Ordering::*;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};
use std::{hint, io, thread};

/// Runs `body` once per CPU, each on a thread pinned to that CPU, and returns the results in the order of `cpus`. All
/// threads run and are pinned before the first body begins; if a thread cannot be started or pinned, no body runs. If a
/// body panics, so does this, after the other threads were released from their barriers.
pub(crate) fn run<T: Send>(cpus: &[usize], body: impl Fn(&TeamThread<'_>) -> T + Sync) -> Result<Vec<T>, Error> {
    cpus::check_available(cpus)?;
    let barrier = Barrier::new(cpus.len());
    let (barrier, body) = (&barrier, &body);
    thread::scope(|scope| {
        let mut handles = Vec::with_capacity(cpus.len());
        for (index, &cpu) in cpus.iter().enumerate() {
            let team_thread = TeamThread { index, count: cpus.len(), barrier };
            let spawned = thread::Builder::new().spawn_scoped(scope, move || {
                let _guard = PoisonOnPanic(barrier);
                if let Err(error) = cpus::pin(cpu) {
                    barrier.poison();
                    return Err(error);
                }
                barrier.try_wait().map_err(|Poisoned| start_aborted(cpu))?;
                Ok(body(&team_thread))
            });
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    barrier.poison();
                    return Err(Error::Thread { cpu, source });
                }
            }
        }
        let results: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
        let (mut values, mut first_error) = (Vec::with_capacity(results.len()), None);
        for result in results {
            match result {
                Ok(Ok(value)) => values.push(value),
                // The failure to pin one thread is the cause; the other threads only report that the start was aborted.
                Ok(Err(error @ Error::Pin { .. })) => first_error = Some(error),
                Ok(Err(error)) => first_error = first_error.or(Some(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        first_error.map_or(Ok(values), Err)
    })
}

fn start_aborted(cpu: usize) -> Error {
    Error::Thread { cpu, source: io::Error::other("another thread of the team could not start") }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TeamThread<'a> {
    /// In the list of CPUs.
    pub(crate) index: usize,
    pub(crate) count: usize,
    barrier: &'a Barrier,
}

impl TeamThread<'_> {
    /// Waits at a barrier for all threads of the team; panics if one has panicked, instead of waiting for it for ever.
    /// Spins first, then yields to the scheduler so that several threads can share one CPU. All writes before the
    /// barrier are visible to all threads after it.
    pub(crate) fn wait(&self) {
        if self.barrier.try_wait().is_err() {
            panic!("another thread of the team panicked");
        }
    }

    /// Times `work` from a common start: after a barrier, each thread takes its own start and end.
    pub(crate) fn time<T>(&self, work: impl FnOnce() -> T) -> (T, TimeSpan) {
        self.wait();
        let start = Instant::now();
        let value = work();
        (value, TimeSpan { start, end: Instant::now() })
    }

    /// This thread's share of `items`: contiguous, in thread order, with sizes that differ by at most one.
    pub(crate) fn share(&self, items: usize) -> std::ops::Range<usize> {
        let cut = |index: usize| (items as u128 * index as u128 / self.count as u128) as usize;
        cut(self.index)..cut(self.index + 1)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeSpan {
    /// Just after the barrier.
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

impl TimeSpan {
    pub(crate) fn duration(&self) -> Duration {
        self.end - self.start
    }

    /// Wall time of a team: from the first start to the last end.
    pub(crate) fn wall_time(spans: &[Self]) -> Duration {
        let start = spans.iter().map(|span| span.start).min();
        let end = spans.iter().map(|span| span.end).max();
        start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start)
    }
}

/// Spins of a waiting thread before it yields; some ten microseconds.
const MAX_SPINS: u32 = 2_000;

/// A value on cache lines of its own, separate from data that is only read (128 bytes: CPUs fetch lines in pairs).
#[derive(Debug)]
#[repr(align(128))]
struct CachePadded<T>(T);

#[derive(Debug)]
struct Barrier {
    threads: usize,
    poisoned: AtomicBool,
    arrived: CachePadded<AtomicUsize>,
    generation: CachePadded<AtomicUsize>,
}

#[derive(Debug)]
struct Poisoned;

impl Barrier {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            poisoned: AtomicBool::new(false),
            arrived: CachePadded(AtomicUsize::new(0)),
            generation: CachePadded(AtomicUsize::new(0)),
        }
    }

    fn poison(&self) {
        self.poisoned.store(true, SeqCst);
    }

    fn try_wait(&self) -> Result<(), Poisoned> {
        let generation = self.generation.0.load(Acquire);
        if self.arrived.0.fetch_add(1, AcqRel) + 1 == self.threads {
            self.arrived.0.store(0, Relaxed);
            self.generation.0.store(generation.wrapping_add(1), Release);
            return Ok(());
        }
        let mut spins = 0;
        while self.generation.0.load(Acquire) == generation {
            if self.poisoned.load(Relaxed) {
                return Err(Poisoned);
            }
            if spins < MAX_SPINS {
                spins += 1;
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
        Ok(())
    }
}

struct PoisonOnPanic<'a>(&'a Barrier);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.poison();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cpus(threads: usize) -> Vec<usize> {
        cpus::allowed().into_iter().cycle().take(threads).collect()
    }

    #[test]
    fn threads_return_in_order_from_their_own_cpu() {
        let cpus = cpus(5);
        let results = run(&cpus, |thread| (thread.index, cpus::allowed())).unwrap();
        for (index, &cpu) in cpus.iter().enumerate() {
            assert_eq!(results[index], (index, vec![cpu]));
        }
    }

    #[test]
    fn writes_before_a_barrier_are_visible_after_it() {
        let written: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
        run(&cpus(4), |thread| {
            for round in 1..=200 {
                written[thread.index].store(round, Relaxed);
                thread.wait();
                assert!(written.iter().all(|value| value.load(Relaxed) == round));
                thread.wait();
            }
        })
        .unwrap();
    }

    #[test]
    fn a_panic_in_one_thread_releases_the_others() {
        let outcome = std::panic::catch_unwind(|| {
            run(&cpus(3), |thread| {
                assert_ne!(thread.index, 1, "fails on purpose");
                thread.wait();
            })
        });
        assert!(outcome.is_err());
    }

    #[test]
    fn an_unusable_cpu_stops_the_team_before_any_body_runs() {
        let ran = AtomicBool::new(false);
        let outcome = run(&[cpus(1)[0], 1023], |_| ran.store(true, SeqCst));
        assert!(matches!(outcome, Err(Error::Cpu { cpu: 1023, .. })));
        assert!(!ran.load(SeqCst));
    }

    #[test]
    fn wall_time_runs_from_the_first_start_to_the_last_end() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let spans = [TimeSpan { start: at(2), end: at(5) }, TimeSpan { start: at(1), end: at(9) }];
        assert_eq!(TimeSpan::wall_time(&spans), Duration::from_millis(8));
        assert_eq!(TimeSpan::wall_time(&[]), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn shares_cover_everything_once(items in 0usize..5000, count in 1usize..70) {
            let barrier = Barrier::new(count);
            let mut next = 0;
            for index in 0..count {
                let share = TeamThread { index, count, barrier: &barrier }.share(items);
                prop_assert_eq!(share.start, next);
                prop_assert!(share.len() <= items / count + 1);
                next = share.end;
            }
            prop_assert_eq!(next, items);
        }
    }
}
