//! Starts the workload, controls it once a period, and ends it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};

use crate::anonymous_memory::AnonymousMemory;
use crate::control::{ConcurrencyControl, Measurement};
use crate::log_file::{LogState, start_log};
use crate::open_loop::OpenLoopWorkers;
use crate::request::RequestModel;
use crate::size::{SystemMemory, resident_bytes};
use crate::test_files::TestFiles;
use crate::window::{Stage, WorkerCounters, empty_histogram, process_cpu_nanos};
use crate::work_folder::WorkFolder;
use crate::workers::{ClosedLoop, Shared};
use crate::{CpuTimes, HashdError, HashdParams, HashdReport, LatencyQuantiles, PAGE, ParamError};

/// The footprint, relative to the memory of the machine, unless one is given and if there is room for it.
const DEFAULT_MEMORY: u64 = 4;

/// What hashd is started with
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct HashdConfig {
    /// Parameters at the start
    pub params: HashdParams,
    /// Folder of test files and logs; a new one in /var/tmp if not given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// Memory footprint at a `mem-frac` of 1; four times the machine's memory, or as much as fits, if not given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Seed of all random choices
    pub seed: u64,
    /// How long to run; until a signal if not given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Nanos>,
    /// Whether test files and logs stay in `dir`, to be used again
    pub keep_files: bool,
}

/// What happens while it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum HashdEvent {
    /// The footprint was determined, and test files are created.
    Preparing {
        /// Footprint at a `mem-frac` of 1, in bytes.
        memory: u64,
        /// Bytes of test files that are written.
        created: u64,
        /// Their folder.
        dir: PathBuf,
    },
    /// Requests can start.
    Started,
    /// A period is over.
    Report(Box<HashdReport>),
}

enum Command {
    SetParams(Box<HashdParams>),
    Stop,
}

/// A running workload; it ends when this is dropped.
pub struct Hashd {
    commands: Sender<Command>,
    control: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    sizes: FootprintSizes,
    params: HashdParams,
}

impl Hashd {
    /// Creates the files and starts to execute requests. `on_event` is called from the thread that controls it, with one
    /// report per period. `is_cancelled` ends the creation of files early.
    ///
    /// # Errors
    /// If a parameter is invalid, the footprint does not fit, or a file or thread cannot be created.
    pub fn start(
        config: &HashdConfig,
        is_cancelled: &dyn Fn() -> bool,
        mut on_event: impl FnMut(HashdEvent) + Send + 'static,
    ) -> Result<Self, HashdError> {
        let params = config.params.clone();
        params.validate()?;
        let dir = config.dir.clone().unwrap_or_else(default_dir);
        let folder = WorkFolder::open(&dir, config.keep_files)?;
        let sizes = FootprintSizes::choose(&params, config.memory, &folder)?;
        let created = TestFiles::missing_bytes(&folder, sizes.file_capacity)?;
        on_event(HashdEvent::Preparing { memory: sizes.memory, created, dir });
        let files = TestFiles::open(&folder, sizes.file_capacity, is_cancelled)?;
        let memory = AnonymousMemory::reserve(sizes.memory)?;
        let shared = Arc::new(Shared::new(files, memory, RequestModel::new(&params, config.seed)));

        let log_state = Arc::new(LogState::default());
        let failures = shared.clone();
        let on_log_error =
            move |error: &std::io::Error| failures.failures.record(format!("cannot write the log: {error}"));
        let (log, log_thread) = start_log(&folder, log_state.clone(), on_log_error)?;
        let workers = match params.open_loop {
            None => Workers::Closed(ClosedLoop::new(shared.clone(), log)),
            Some(_) => Workers::Open(OpenLoopWorkers::start(shared.clone(), log)?),
        };
        let concurrency = thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64 / 2.0);
        let mut control_thread = ControlThread {
            control: ConcurrencyControl::new(&params, concurrency),
            params: params.clone(),
            seed: config.seed,
            shared: shared.clone(),
            sizes,
            workers,
            log_state,
            window: empty_histogram(),
            window_start: Instant::now(),
            cpu: CpuTimes::default(),
            done: 0,
            has_new_params: false,
        };
        control_thread.apply_footprint();
        control_thread.apply_concurrency();
        let (commands, receiver) = channel();
        let control = move || {
            on_event(HashdEvent::Started);
            control_thread.run(&receiver, &mut on_event);
            // The workers, which have senders of the log, are gone; a panic of its thread has been printed.
            let _ = log_thread.join();
        };
        let control = thread::Builder::new().name("hashd-control".to_owned()).spawn(control);
        let control = Some(control.map_err(|source| HashdError::Thread { source })?);
        // Every file is open: a new folder goes, so that nothing remains however this process ends.
        drop(folder);
        Ok(Self { commands, control, shared, sizes, params })
    }

    /// Continues with other parameters.
    ///
    /// # Errors
    /// If one is invalid, or cannot be changed in this way while it runs. The previous ones stay in force then.
    pub fn set_params(&mut self, params: HashdParams) -> Result<(), HashdError> {
        params.validate()?;
        if params.open_loop.is_some() != self.params.open_loop.is_some() {
            let (value, expected) = match params.open_loop {
                Some(open_loop) => (open_loop.rate.to_string(), "none, as at the start"),
                None => ("none".to_owned(), "a rate, as at the start"),
            };
            return Err(ParamError::new("open-loop", value, expected).into());
        }
        self.sizes.check(&params, self.shared.memory.bytes() as u64)?;
        self.params = params.clone();
        // It only fails if the control thread has panicked, which has been printed.
        let _ = self.commands.send(Command::SetParams(Box::new(params)));
        Ok(())
    }

    /// The parameters in force.
    pub fn params(&self) -> &HashdParams {
        &self.params
    }

    /// Waits for the requests in flight, ends all threads, and removes what is not to be kept. What was completed since the
    /// last period is reported first.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(control) = self.control.take() else { return };
        let _ = self.commands.send(Command::Stop);
        let _ = control.join();
    }
}

impl Drop for Hashd {
    fn drop(&mut self) {
        self.end();
    }
}

/// A folder that only this process uses, on a disk.
fn default_dir() -> PathBuf {
    PathBuf::from(format!("/var/tmp/weighbridge-hashd.{}", std::process::id()))
}

/// Sizes that are determined at the start.
#[derive(Clone, Copy, Debug)]
struct FootprintSizes {
    /// Footprint of files and anonymous memory at a `mem-frac` of 1.
    memory: u64,
    /// Size of all test files.
    file_capacity: u64,
}

impl FootprintSizes {
    fn choose(params: &HashdParams, memory: Option<Bytes>, folder: &WorkFolder) -> Result<Self, HashdError> {
        let memory = match memory {
            Some(Bytes(memory)) => memory,
            None => default_memory(params, SystemMemory::read(), folder.free_bytes()?),
        };
        if memory < 1 << 20 {
            return Err(ParamError::new("memory", Bytes(memory), "a size of at least 1m").into());
        }
        let sizes = Self { memory, file_capacity: (memory as f64 * params.file_frac) as u64 };
        sizes.check(params, 0)?;
        Ok(sizes)
    }

    /// Checks that the footprint fits, while `in_use` bytes of anonymous memory are in use.
    fn check(&self, params: &HashdParams, in_use: u64) -> Result<(), HashdError> {
        if self.file_bytes(params) > self.file_capacity.max(PAGE as u64) {
            let highest = self.file_capacity as f64 / self.memory as f64 / params.mem_frac;
            let expected = format!("at most {highest:.3}, for which the test files were created");
            return Err(ParamError::new("file-frac", params.file_frac, expected).into());
        }
        let (required, memory) = (self.anon_bytes(params), SystemMemory::read());
        match memory.map(|memory| memory.available.saturating_add(in_use)) {
            Some(available) if required > available => Err(HashdError::Memory { required, available }),
            _ => Ok(()),
        }
    }

    /// Footprint of files.
    fn file_bytes(&self, params: &HashdParams) -> u64 {
        (self.memory as f64 * params.mem_frac * params.file_frac) as u64
    }

    /// Footprint of anonymous memory.
    fn anon_bytes(&self, params: &HashdParams) -> u64 {
        (self.memory as f64 * params.mem_frac * (1.0 - params.file_frac)) as u64
    }
}

/// Four times the memory, or as much as fits: anonymous memory into four fifths of what is available, files into half of
/// the free space.
fn default_memory(params: &HashdParams, system: Option<SystemMemory>, free: u64) -> u64 {
    let Some(system) = system else { return 1 << 30 };
    let limit = |bytes: u64, part: f64| if part > 0.0 { (bytes as f64 / part) as u64 } else { u64::MAX };
    let by_memory = limit(system.available / 5 * 4, params.mem_frac * (1.0 - params.file_frac));
    let by_disk = limit(free / 2, params.file_frac);
    system.total.saturating_mul(DEFAULT_MEMORY).min(by_memory).min(by_disk)
}

enum Workers {
    Closed(ClosedLoop),
    Open(OpenLoopWorkers),
}

impl Workers {
    fn for_each(&self, mut each: impl FnMut(&WorkerCounters)) {
        match self {
            Self::Closed(workers) => workers.counters().for_each(each),
            Self::Open(workers) => workers.counters().iter().for_each(|counters| each(counters)),
        }
    }
}

/// The thread that collects the figures of each period and adjusts the concurrency.
struct ControlThread {
    params: HashdParams,
    seed: u64,
    shared: Arc<Shared>,
    sizes: FootprintSizes,
    workers: Workers,
    control: ConcurrencyControl,
    log_state: Arc<LogState>,
    window: Histogram<u32>,
    window_start: Instant,
    /// CPU times since the start, as of the last period.
    cpu: CpuTimes,
    done: u64,
    /// Whether the parameters changed in this period, which then does not count for the controllers.
    has_new_params: bool,
}

impl ControlThread {
    fn run(mut self, commands: &Receiver<Command>, on_event: &mut impl FnMut(HashdEvent)) {
        self.cpu = self.cpu_times();
        self.window_start = Instant::now();
        loop {
            let period = Duration::from(self.params.control_period);
            let wait = (self.window_start + period).saturating_duration_since(Instant::now());
            match commands.recv_timeout(wait) {
                Ok(Command::SetParams(params)) => self.set_params(*params),
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let report = self.close_period();
                    on_event(HashdEvent::Report(Box::new(report)));
                }
            }
        }
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        match &mut self.workers {
            Workers::Closed(workers) => workers.join(),
            Workers::Open(workers) => workers.join(),
        }
        // So that every completed request is in a report.
        let report = self.close_period();
        if report.completed > 0 {
            on_event(HashdEvent::Report(Box::new(report)));
        }
    }

    fn set_params(&mut self, params: HashdParams) {
        self.params = params;
        self.control.set_params(&self.params);
        self.shared.set_model(RequestModel::new(&self.params, self.seed));
        self.apply_footprint();
        self.apply_concurrency();
        self.has_new_params = true;
    }

    fn apply_footprint(&self) {
        let pages = (self.sizes.file_bytes(&self.params) / PAGE as u64).clamp(1, self.shared.files.pages());
        self.shared.file_pages.store(pages, Ordering::Relaxed);
        self.shared.memory.resize(self.sizes.anon_bytes(&self.params));
        self.log_state.line_bytes.store(self.params.log_line_bytes(), Ordering::Relaxed);
    }

    fn apply_concurrency(&mut self) {
        if let Workers::Closed(workers) = &mut self.workers
            && let Err(error) = workers.set_concurrency(self.control.concurrency())
        {
            self.shared.failures.record(error.to_string());
        }
    }

    /// Collects the figures of the period that ends now, and adjusts the next one to them.
    fn close_period(&mut self) -> HashdReport {
        let now = Instant::now();
        let period = (now - self.window_start).as_secs_f64();
        self.window_start = now;
        self.window.reset();
        let (mut in_flight, mut workers) = (0, 0);
        self.workers.for_each(|counters| {
            counters.drain_into(&mut self.window);
            in_flight += u64::from(counters.is_in_flight());
            workers += 1;
        });
        let completed = self.window.len();
        self.done += completed;
        let rps = completed as f64 / period;
        let latency = LatencyQuantiles::of(&self.window, self.params.lat_quantile);
        let cpu = self.cpu_times();
        let report = HashdReport {
            time: (now - self.shared.start).as_secs_f64(),
            period,
            completed,
            done: self.done,
            rps,
            rps_target: self.params.rps_target,
            concurrency: None,
            concurrency_limit: None,
            in_flight,
            workers,
            latency,
            file_bytes: self.shared.file_pages.load(Ordering::Relaxed) * PAGE as u64,
            file_addr_frac: self.shared.file_scale.load(),
            anon_bytes: self.shared.memory.bytes() as u64,
            anon_addr_frac: self.shared.anon_scale.load(),
            resident_bytes: resident_bytes(),
            backlog: self.backlog().0,
            dropped: self.backlog().1,
            errors: self.shared.failures.count(),
            error: self.shared.failures.last(),
            cpu: difference(cpu, self.cpu),
        };
        self.cpu = cpu;
        self.shared.memory.release_unused();
        if !std::mem::take(&mut self.has_new_params) && !self.shared.is_stopping() {
            let latency = latency.map(|latency| Duration::from_secs_f64(latency.control));
            self.control.update(&self.params, Measurement { rps, latency, in_flight: in_flight as usize });
            self.apply_concurrency();
            self.apply_scale(rps);
        }
        match self.workers {
            Workers::Open(_) => report,
            Workers::Closed(_) => HashdReport {
                concurrency: Some(self.control.concurrency()),
                concurrency_limit: Some(self.control.limit()),
                ..report
            },
        }
    }

    /// Scales the addresses to the rate.
    fn apply_scale(&self, rps: f64) {
        let load = self.params.rps_max.map_or(1.0, |rps_max| (rps / rps_max).min(1.0));
        let scale = |base: f64| base + (1.0 - base) * load;
        self.shared.file_scale.store(scale(self.params.file_addr_base));
        self.shared.anon_scale.store(scale(self.params.anon_addr_base));
    }

    /// Requests that wait, and requests that were dropped.
    fn backlog(&self) -> (u64, u64) {
        match &self.workers {
            Workers::Closed(_) => (0, 0),
            Workers::Open(workers) => (workers.backlog(), workers.dropped()),
        }
    }

    /// CPU times since the start.
    fn cpu_times(&self) -> CpuTimes {
        let mut nanos = [0; Stage::ALL.len()];
        self.workers.for_each(|counters| {
            for stage in Stage::ALL {
                nanos[stage as usize] += counters.cpu_nanos(stage);
            }
        });
        let [read, touch, hash, sleep] = nanos.map(|nanos| nanos as f64 / 1e9);
        let log = self.log_state.cpu_nanos.load(Ordering::Relaxed) as f64 / 1e9;
        let other = process_cpu_nanos() as f64 / 1e9 - read - touch - hash - sleep - log;
        CpuTimes { read, touch, hash, sleep, log, other }
    }
}

fn difference(now: CpuTimes, before: CpuTimes) -> CpuTimes {
    CpuTimes {
        read: now.read - before.read,
        touch: now.touch - before.touch,
        hash: now.hash - before.hash,
        sleep: now.sleep - before.sleep,
        log: now.log - before.log,
        other: now.other - before.other,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::OpenLoop;

    fn config(dir: &std::path::Path) -> HashdConfig {
        let params = HashdParams {
            control_period: Nanos(100_000_000),
            file_size_mean: Bytes(64 << 10),
            chunk_pages: 4,
            sleep_mean: Nanos(3_000_000),
            ..HashdParams::default()
        };
        HashdConfig { params, dir: Some(dir.to_owned()), memory: Some(Bytes(8 << 20)), ..HashdConfig::default() }
    }

    fn start(config: &HashdConfig) -> (Hashd, mpsc::Receiver<HashdEvent>) {
        let (sender, receiver) = mpsc::channel();
        // The test may have seen enough.
        let hashd = Hashd::start(config, &|| false, move |event| drop(sender.send(event))).unwrap();
        (hashd, receiver)
    }

    fn next_report(events: &mpsc::Receiver<HashdEvent>) -> HashdReport {
        loop {
            if let HashdEvent::Report(report) = events.recv().unwrap() {
                return *report;
            }
        }
    }

    /// Reports until one of them meets a condition.
    fn wait_for(events: &mpsc::Receiver<HashdEvent>, condition: impl Fn(&HashdReport) -> bool) -> HashdReport {
        for _ in 0..600 {
            let report = next_report(events);
            if condition(&report) {
                return report;
            }
        }
        panic!("no report meets the condition");
    }

    #[test]
    fn every_request_is_in_one_report_and_nothing_stays() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("work");
        let (hashd, events) = start(&config(&dir));
        wait_for(&events, |report| report.done > 50);
        hashd.stop();
        let rest: Vec<HashdEvent> = events.iter().collect();
        if let Some(HashdEvent::Report(last)) = rest.last() {
            assert_eq!((last.in_flight, last.errors), (0, 0));
        }
        assert!(!dir.exists());
    }

    #[test]
    fn parameters_change_while_it_runs() {
        let parent = tempfile::tempdir().unwrap();
        let config = config(parent.path());
        let (mut hashd, events) = start(&config);
        let first = wait_for(&events, |report| report.done > 0);
        let changed = HashdParams { mem_frac: 0.4, rps_target: Some(30.0), chunk_pages: 8, ..config.params.clone() };
        hashd.set_params(changed).unwrap();
        let report = wait_for(&events, |report| report.rps_target == Some(30.0));
        assert_eq!(
            (report.file_bytes, report.anon_bytes),
            (first.file_bytes.div_ceil(2) / 4096 * 4096, first.anon_bytes / 2)
        );
        wait_for(&events, |report| report.rps < 60.0);
        let refused = |params: HashdParams, hashd: &mut Hashd| hashd.set_params(params).unwrap_err().to_string();
        let open = HashdParams {
            open_loop: Some(OpenLoop { rate: 5.0, arrivals: Default::default() }),
            ..config.params.clone()
        };
        assert_eq!(refused(open, &mut hashd), "invalid open-loop `5`: expected none, as at the start");
        let files = HashdParams { file_frac: 0.9, ..config.params.clone() };
        assert!(refused(files, &mut hashd).starts_with("invalid file-frac `0.9`: expected at most 0.312"));
        assert_eq!(hashd.params().rps_target, Some(30.0));
    }

    #[test]
    fn open_loop_keeps_its_rate_and_counts_from_the_intended_start() {
        let parent = tempfile::tempdir().unwrap();
        let mut config = config(parent.path());
        config.params.open_loop = Some(OpenLoop { rate: 100.0, arrivals: crate::Arrivals::Uniform });
        let (hashd, events) = start(&config);
        let report = wait_for(&events, |report| report.done >= 100);
        assert_eq!((report.concurrency, report.dropped), (None, 0));
        // No more than the schedule has, and the rest is in flight or waits.
        let due = (report.time * 100.0) as u64 + 2;
        assert!(report.done + report.in_flight + report.backlog <= due, "{report:?}");
        drop(hashd);

        // One worker cannot keep up: the response time grows with the backlog.
        config.params.concurrency_max = 1;
        config.params.open_loop = Some(OpenLoop { rate: 2000.0, arrivals: crate::Arrivals::Poisson });
        let (_hashd, events) = start(&config);
        let report = wait_for(&events, |report| report.backlog > 1000);
        assert_eq!(report.workers, 1);
        assert!(report.latency.is_some_and(|latency| latency.p50 > 0.05), "{report:?}");
    }

    #[test]
    fn footprint_that_does_not_fit_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let message = |memory: u64, params: HashdParams| {
            let config = HashdConfig { params, memory: Some(Bytes(memory)), ..config(parent.path()) };
            Hashd::start(&config, &|| false, |_| ()).err().unwrap().to_string()
        };
        let no_files = HashdParams { file_frac: 0.0, ..HashdParams::default() };
        assert!(message(1 << 60, no_files).starts_with("cannot use 838861 TiB of anonymous memory: "));
        let only_files = HashdParams { file_frac: 1.0, ..HashdParams::default() };
        assert!(message(1 << 60, only_files).starts_with("cannot create 1048576 TiB of test files in "));
        assert_eq!(message(5000, HashdParams::default()), "invalid memory `5000`: expected a size of at least 1m");
    }

    #[test]
    fn default_footprint_fits_into_memory_and_disk() {
        let params = HashdParams::default();
        let system = |total, available| Some(SystemMemory { total, available });
        assert_eq!(default_memory(&params, system(1000, 100_000), 100_000), 4000);
        assert_eq!(default_memory(&params, system(100_000, 750), 1_000_000), 999);
        assert_eq!(default_memory(&params, system(100_000, 1_000_000), 500), 1000);
    }
}
