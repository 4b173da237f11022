//! The open loop: requests start at times of a schedule. A request whose time has come while all workers are busy
//! waits, and its response time counts from then.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::log_file::LogEntry;
use crate::window::WorkerCounters;
use crate::workers::{RequestExecutor, Shared, spawn_worker};
use crate::{Arrivals, HashdError, OpenLoop};

/// Requests that wait for a worker; further ones are dropped and counted.
const MAX_BACKLOG: usize = 65_536;
/// Stream of random numbers of the schedule, which no request has.
const SCHEDULE_STREAM: u64 = u64::MAX;
/// Longest sleep without a look at the parameters.
const MAX_WAIT: Duration = Duration::from_millis(100);

pub(crate) struct OpenLoopWorkers {
    dispatcher: Option<JoinHandle<()>>,
    state: Arc<DispatchState>,
}

#[derive(Debug, Default)]
struct DispatchState {
    /// Locked when a worker is started, and once a period.
    counters: Mutex<Vec<Arc<WorkerCounters>>>,
    backlog: AtomicU64,
    dropped: AtomicU64,
}

impl OpenLoopWorkers {
    pub(crate) fn start(shared: Arc<Shared>, log: SyncSender<LogEntry>) -> Result<Self, HashdError> {
        let state = Arc::new(DispatchState::default());
        let dispatcher = Dispatcher::new(shared, log, state.clone());
        let builder = thread::Builder::new().name("hashd-schedule".to_owned());
        let dispatcher = builder.spawn(move || dispatcher.run()).map_err(|source| HashdError::Thread { source })?;
        Ok(Self { dispatcher: Some(dispatcher), state })
    }

    pub(crate) fn counters(&self) -> Vec<Arc<WorkerCounters>> {
        self.state.lock_counters().clone()
    }

    pub(crate) fn backlog(&self) -> u64 {
        self.state.backlog.load(Ordering::Relaxed)
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.state.dropped.load(Ordering::Relaxed)
    }

    /// `is_stopping` must have been set.
    pub(crate) fn join(&mut self) {
        let Some(dispatcher) = self.dispatcher.take() else { return };
        dispatcher.thread().unpark();
        // A panic has been printed.
        let _ = dispatcher.join();
    }
}

impl DispatchState {
    fn lock_counters(&self) -> std::sync::MutexGuard<'_, Vec<Arc<WorkerCounters>>> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives each request to an idle worker when its time has come.
struct Dispatcher {
    shared: Arc<Shared>,
    log: SyncSender<LogEntry>,
    state: Arc<DispatchState>,
    workers: Vec<(SyncSender<Instant>, JoinHandle<()>)>,
    /// Workers that are known to be idle; they report it on the channel.
    idle: Vec<usize>,
    idle_sender: SyncSender<usize>,
    idle_receiver: Receiver<usize>,
}

impl Dispatcher {
    fn new(shared: Arc<Shared>, log: SyncSender<LogEntry>, state: Arc<DispatchState>) -> Self {
        let (idle_sender, idle_receiver) = sync_channel(MAX_BACKLOG);
        Self { shared, log, state, workers: Vec::new(), idle: Vec::new(), idle_sender, idle_receiver }
    }

    fn run(mut self) {
        let mut schedule = Schedule::new(self.shared.requests().model.rng_of(SCHEDULE_STREAM));
        let mut backlog = VecDeque::with_capacity(MAX_BACKLOG);
        let (mut model, mut generation) = (self.shared.requests().model, self.shared.generation());
        let mut next = Instant::now();
        while !self.shared.is_stopping() {
            if self.shared.generation() != generation {
                (model, generation) = (self.shared.requests().model, self.shared.generation());
            }
            let Some(open_loop) = model.params().open_loop else { return };
            while next <= Instant::now() {
                if backlog.len() < MAX_BACKLOG {
                    backlog.push_back(next);
                } else {
                    self.state.dropped.fetch_add(1, Ordering::Relaxed);
                }
                next += schedule.draw_gap(open_loop);
            }
            self.dispatch(&mut backlog, model.params().concurrency_max as usize);
            self.state.backlog.store(backlog.len() as u64, Ordering::Relaxed);
            let wait = next.saturating_duration_since(Instant::now()).min(MAX_WAIT);
            if backlog.is_empty() {
                thread::park_timeout(wait);
            } else if let Ok(worker) = self.idle_receiver.recv_timeout(wait) {
                self.idle.push(worker);
            }
        }
        self.join_workers();
    }

    fn dispatch(&mut self, backlog: &mut VecDeque<Instant>, max_workers: usize) {
        self.idle.extend(self.idle_receiver.try_iter());
        while let Some(&intended_start) = backlog.front() {
            let Some(worker) = self.idle.pop().or_else(|| self.start_worker(max_workers)) else { return };
            // The mailbox of an idle worker is empty, and the worker waits for it.
            let _ = self.workers[worker].0.send(intended_start);
            backlog.pop_front();
        }
    }

    /// Starts another worker; `None` if there may be no more, or it cannot be started.
    fn start_worker(&mut self, max_workers: usize) -> Option<usize> {
        if self.workers.len() >= max_workers {
            return None;
        }
        let index = self.workers.len();
        let (sender, mailbox) = sync_channel::<Instant>(1);
        let counters = Arc::new(WorkerCounters::new());
        let mut executor = RequestExecutor::new(self.shared.clone(), counters.clone(), self.log.clone());
        let idle = self.idle_sender.clone();
        let work = move || {
            for intended_start in mailbox {
                executor.execute_next(intended_start);
                // Nobody listens any more once it stops.
                let _ = idle.send(index);
            }
        };
        match spawn_worker(work) {
            Ok(thread) => {
                self.state.lock_counters().push(counters);
                self.workers.push((sender, thread));
                Some(index)
            }
            Err(error) => {
                self.shared.failures.record(error.to_string());
                None
            }
        }
    }

    fn join_workers(self) {
        for (mailbox, thread) in self.workers {
            drop(mailbox);
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

struct Schedule {
    rng: ChaCha8Rng,
}

impl Schedule {
    fn new(rng: ChaCha8Rng) -> Self {
        Self { rng }
    }

    fn draw_gap(&mut self, OpenLoop { rate, arrivals }: OpenLoop) -> Duration {
        let relative = match arrivals {
            Arrivals::Uniform => 1.0,
            Arrivals::Poisson => -(1.0 - self.rng.random::<f64>()).ln(),
        };
        Duration::from_secs_f64(relative / rate)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn gaps(arrivals: Arrivals) -> Vec<f64> {
        let mut schedule = Schedule::new(ChaCha8Rng::seed_from_u64(3));
        (0..10_000).map(|_| schedule.draw_gap(OpenLoop { rate: 100.0, arrivals }).as_secs_f64()).collect()
    }

    #[test]
    fn gaps_have_the_mean_and_deviation_of_their_distribution() {
        let uniform = gaps(Arrivals::Uniform);
        assert!(uniform.iter().all(|gap| (gap - 0.01).abs() < 1e-9));
        let poisson = gaps(Arrivals::Poisson);
        let mean = poisson.iter().sum::<f64>() / poisson.len() as f64;
        let variance = poisson.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / poisson.len() as f64;
        assert!((mean / 0.01 - 1.0).abs() < 0.05, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{variance}");
        assert_eq!(gaps(Arrivals::Poisson), poisson, "the same seed");
    }
}
