//! Worker threads: what they share, and the closed loop, in which the concurrency determines when requests start.
//!
//! With a concurrency of 2.25, two workers execute requests without a pause, and a third one pauses after each for
//! three times its latency: it is busy for a quarter of the time. Further workers are parked. A worker decides this
//! from two atomic numbers, so no lock is shared.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::HashdError;
use crate::anonymous_memory::AnonymousMemory;
use crate::log_file::LogEntry;
use crate::request::{Footprint, RequestModel};
use crate::test_files::TestFiles;
use crate::window::{StageClock, WorkerCounters};

/// Bytes of address space for a worker's stack.
const STACK: usize = 256 << 10;
/// Least part of the time that a worker is busy: its pause is at most a million latencies.
const MIN_SHARE: f64 = 1e-6;
/// Pause after a request that failed, so that a broken disk does not keep the CPUs busy.
const ERROR_PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(crate) struct AtomicF64(AtomicU64);

impl AtomicF64 {
    pub(crate) fn load(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn store(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: AtomicU64,
    last: Mutex<Option<String>>,
}

impl Failures {
    pub(crate) fn record(&self, message: String) {
        self.count.fetch_add(1, Ordering::Relaxed);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn last(&self) -> Option<String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Requests {
    pub(crate) model: Arc<RequestModel>,
    pub(crate) files: Arc<TestFiles>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) memory: AnonymousMemory,
    pub(crate) start: Instant,
    pub(crate) failures: Failures,
    pub(crate) file_pages: AtomicU64,
    pub(crate) file_scale: AtomicF64,
    pub(crate) anon_scale: AtomicF64,
    pub(crate) concurrency: AtomicF64,
    pub(crate) is_stopping: AtomicBool,
    pub(crate) fillers: AtomicUsize,
    next_request: AtomicU64,
    /// Locked by workers only when `generation` shows that it has changed.
    requests: RwLock<Requests>,
    generation: AtomicU64,
}

impl Shared {
    pub(crate) fn new(memory: AnonymousMemory, requests: Requests) -> Self {
        let whole = || AtomicF64(AtomicU64::new(1f64.to_bits()));
        Self {
            memory,
            start: Instant::now(),
            failures: Failures::default(),
            file_pages: AtomicU64::new(1),
            file_scale: whole(),
            anon_scale: whole(),
            concurrency: AtomicF64::default(),
            is_stopping: AtomicBool::new(false),
            fillers: AtomicUsize::new(0),
            next_request: AtomicU64::new(0),
            requests: RwLock::new(requests),
            generation: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> Requests {
        self.requests.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_requests(&self, requests: Requests) {
        *self.requests.write().unwrap_or_else(PoisonError::into_inner) = requests;
        self.generation.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn footprint(&self) -> Footprint {
        Footprint {
            file_pages: self.file_pages.load(Ordering::Relaxed),
            file_scale: self.file_scale.load(),
            anon_scale: self.anon_scale.load(),
        }
    }

    /// The part of the time that a worker is to be busy.
    fn share_of(&self, worker: usize) -> f64 {
        (self.concurrency.load() - worker as f64).clamp(0.0, 1.0)
    }
}

pub(crate) struct RequestExecutor {
    shared: Arc<Shared>,
    counters: Arc<WorkerCounters>,
    clock: StageClock,
    log: SyncSender<LogEntry>,
    requests: Requests,
    generation: u64,
    buffer: Vec<u8>,
}

impl RequestExecutor {
    pub(crate) fn new(shared: Arc<Shared>, counters: Arc<WorkerCounters>, log: SyncSender<LogEntry>) -> Self {
        let (generation, requests) = (shared.generation(), shared.requests());
        let buffer = vec![0; requests.model.chunk_bytes()];
        let clock = StageClock::new(counters.clone());
        Self { shared, counters, clock, log, requests, generation, buffer }
    }

    /// The latency counts from `start`. Returns the time of the request's end.
    pub(crate) fn execute_next(&mut self, start: Instant) -> Instant {
        self.refresh_requests();
        let request = self.shared.next_request.fetch_add(1, Ordering::Relaxed);
        self.counters.set_in_flight(true);
        let resources = (&*self.requests.files, &self.shared.memory, self.shared.footprint());
        let result = self.requests.model.execute(request, resources, &mut self.buffer, &mut self.clock);
        let end = Instant::now();
        self.counters.set_in_flight(false);
        match result {
            Ok(digest) => {
                let latency = end.saturating_duration_since(start);
                self.counters.record(latency);
                let entry = LogEntry { time: end - self.shared.start, latency, digest };
                // The log thread outlives the workers; if it failed, it has reported that.
                let _ = self.log.send(entry);
            }
            Err(error) => {
                self.shared.failures.record(format!("cannot read a test file: {error}"));
                thread::sleep(ERROR_PAUSE);
            }
        }
        end
    }

    fn refresh_requests(&mut self) {
        let generation = self.shared.generation();
        if generation != self.generation {
            (self.generation, self.requests) = (generation, self.shared.requests());
            self.buffer.resize(self.requests.model.chunk_bytes(), 0);
        }
    }
}

pub(crate) fn spawn_worker(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, HashdError> {
    let builder = thread::Builder::new().name("hashd-worker".to_owned()).stack_size(STACK);
    builder.spawn(work).map_err(|source| HashdError::Thread { source })
}

/// Workers that start requests on their own, as the concurrency permits.
pub(crate) struct ClosedLoop {
    shared: Arc<Shared>,
    log: SyncSender<LogEntry>,
    workers: Vec<(Arc<WorkerCounters>, Option<JoinHandle<()>>)>,
}

impl ClosedLoop {
    pub(crate) fn new(shared: Arc<Shared>, log: SyncSender<LogEntry>) -> Self {
        Self { shared, log, workers: Vec::new() }
    }

    /// Changes the concurrency, and starts the workers that it needs.
    pub(crate) fn set_concurrency(&mut self, concurrency: f64) -> Result<(), HashdError> {
        let previous = self.shared.concurrency.load();
        self.shared.concurrency.store(concurrency);
        let affected = previous.min(concurrency) as usize..(previous.max(concurrency).ceil() as usize);
        for (_, thread) in self.workers.get(affected.start..affected.end.min(self.workers.len())).into_iter().flatten()
        {
            thread.as_ref().inspect(|thread| thread.thread().unpark());
        }
        while self.workers.len() < concurrency.ceil() as usize {
            let counters = Arc::new(WorkerCounters::new());
            let executor = RequestExecutor::new(self.shared.clone(), counters.clone(), self.log.clone());
            let index = self.workers.len();
            let thread = spawn_worker(move || run_worker(executor, index))?;
            self.workers.push((counters, Some(thread)));
        }
        Ok(())
    }

    pub(crate) fn counters(&self) -> impl Iterator<Item = &WorkerCounters> {
        self.workers.iter().map(|(counters, _)| &**counters)
    }

    /// `is_stopping` must have been set.
    pub(crate) fn join(&mut self) {
        for (_, thread) in &self.workers {
            thread.as_ref().inspect(|thread| thread.thread().unpark());
        }
        for (_, thread) in &mut self.workers {
            // A panic of a worker has been printed.
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

fn run_worker(mut executor: RequestExecutor, index: usize) {
    let shared = executor.shared.clone();
    let (mut end, mut latency) = (Instant::now(), Duration::ZERO);
    while !shared.is_stopping() {
        match time_until_start(shared.share_of(index), latency, end.elapsed()) {
            None => thread::park(),
            Some(Duration::ZERO) => {
                let start = Instant::now();
                end = executor.execute_next(start);
                latency = end - start;
            }
            Some(wait) => thread::park_timeout(wait),
        }
    }
}

/// How long a worker waits until it starts the next request; `None` if it has no share of the concurrency.
fn time_until_start(share: f64, latency: Duration, since_end: Duration) -> Option<Duration> {
    if share <= 0.0 {
        return None;
    }
    let pause = latency.mul_f64(1.0 / share.max(MIN_SHARE) - 1.0);
    Some(pause.saturating_sub(since_end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_the_last_worker_is_the_fraction() {
        let wait = |share| time_until_start(share, Duration::from_millis(30), Duration::ZERO);
        assert_eq!(wait(0.0), None);
        assert_eq!(wait(1.0), Some(Duration::ZERO));
        assert_eq!(wait(0.25), Some(Duration::from_millis(90)));
        let later = time_until_start(0.25, Duration::from_millis(30), Duration::from_millis(100));
        assert_eq!(later, Some(Duration::ZERO));
    }
}
