//! Starts the workload, controls it once a period, and ends it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use wb_sys::clock::unix_time;

use crate::anonymous_memory::AnonymousMemory;
use crate::content::PageContent;
use crate::control::{ConcurrencyControl, Measurement};
use crate::fill::FillPlan;
use crate::footprint::FootprintSizes;
use crate::log_file::{LogState, start_log};
use crate::open_loop::OpenLoopWorkers;
use crate::params::HASH_TIME;
use crate::request::RequestModel;
use crate::size::resident_bytes;
use crate::test_files::TestFiles;
use crate::window::{Stage, WorkerCounters, empty_histogram, process_cpu_nanos};
use crate::work_folder::WorkFolder;
use crate::workers::{ClosedLoop, Requests, Shared};
use crate::{
    CpuTimes, HashdConfig, HashdError, HashdEvent, HashdParams, HashdReport, LatencyQuantiles, PAGE, ParamError,
};

enum Command {
    SetParams(Box<HashdParams>, Arc<TestFiles>),
    Stop,
}

/// A running workload; it ends when this is dropped.
pub struct Hashd {
    commands: Sender<Command>,
    control: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    folder: WorkFolder,
    content: PageContent,
    sizes: FootprintSizes,
    params: HashdParams,
}

impl Hashd {
    /// Creates the files (until `is_cancelled`) and starts to execute requests. `on_event` is called from the control
    /// thread, with one report per period.
    pub fn start(
        config: &HashdConfig,
        is_cancelled: &dyn Fn() -> bool,
        mut on_event: impl FnMut(HashdEvent) + Send + 'static,
    ) -> Result<Self, HashdError> {
        let params = config.params.clone();
        params.validate()?;
        if !(0.0..=1.0).contains(&config.compressibility) {
            return Err(ParamError::new("compressibility", config.compressibility, "a number from 0 to 1").into());
        }
        let content = PageContent::new(config.compressibility);
        let dir = config.dir.clone().unwrap_or_else(default_dir);
        let folder = WorkFolder::open(&dir, config.keep_files)?;
        let sizes = FootprintSizes::choose(&params, config.memory, &folder)?;
        let capacity = sizes.file_capacity(&params);
        let created = TestFiles::default().missing_bytes(capacity, &folder, content)?;
        on_event(HashdEvent::Preparing { memory: sizes.memory, created, dir });
        let files = Arc::new(TestFiles::default().extend_to(capacity, &folder, content, is_cancelled)?);
        let memory = AnonymousMemory::reserve(sizes.memory, content)?;
        memory.resize(sizes.anon_bytes(&params));
        if config.fill {
            let plan = FillPlan::new(&memory, sizes.file_pages(&params, files.pages()), 0);
            on_event(HashdEvent::Filling { bytes: plan.bytes() });
            plan.fill(&memory, &files, is_cancelled)?;
        }
        let model = Arc::new(RequestModel::new(&params, config.seed));
        let shared = Arc::new(Shared::new(memory, Requests { model, files }));

        let log_state = Arc::new(LogState::default());
        let failures = shared.clone();
        let on_log_error =
            move |error: &std::io::Error| failures.failures.record(format!("cannot write the log: {error}"));
        let (log, log_thread) = start_log(&folder, log_state.clone(), on_log_error)?;
        let workers = match params.open_loop {
            None => Workers::Closed(ClosedLoop::new(shared.clone(), log)),
            Some(_) => Workers::Open(OpenLoopWorkers::start(shared.clone(), log)?),
        };
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let mut control_thread = ControlThread {
            control: ConcurrencyControl::new(&params, initial_concurrency(&params, cpus)),
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
            changes: 0,
            has_new_params: false,
            fill: config.fill,
            fillers: Vec::new(),
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
        Ok(Self { commands, control, shared, folder, content, sizes, params })
    }

    /// Continues with other parameters; if this fails, the previous ones stay in force. Additional test files are
    /// created first (until `is_cancelled`), and additions to the footprint are filled in the background. The open loop
    /// cannot be switched on or off while the workload runs.
    pub fn set_params(&mut self, params: HashdParams, is_cancelled: &dyn Fn() -> bool) -> Result<(), HashdError> {
        params.validate()?;
        if params.open_loop.is_some() != self.params.open_loop.is_some() {
            let (value, expected) = match params.open_loop {
                Some(open_loop) => (open_loop.rate.to_string(), "none, as at the start"),
                None => ("none".to_owned(), "a rate, as at the start"),
            };
            return Err(ParamError::new("open-loop", value, expected).into());
        }
        self.sizes.check(&params, resident_bytes())?;
        let (files, capacity) = (self.shared.requests().files, self.sizes.file_capacity(&params));
        files.missing_bytes(capacity, &self.folder, self.content)?;
        let files = Arc::new(files.extend_to(capacity, &self.folder, self.content, is_cancelled)?);
        self.params = params.clone();
        // It only fails if the control thread has panicked, which has been printed.
        let _ = self.commands.send(Command::SetParams(Box::new(params), files));
        Ok(())
    }

    pub fn params(&self) -> &HashdParams {
        &self.params
    }

    /// Waits for the requests in flight, ends all threads, and removes what is not to be kept. A last report has what
    /// was completed since the last period.
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

/// The concurrency that the target requires if requests take as long as on the machine for which the default parameters
/// are made, within a range that is safe to begin with.
fn initial_concurrency(params: &HashdParams, cpus: usize) -> f64 {
    let latency = (Duration::from(params.sleep_mean) + HASH_TIME).as_secs_f64();
    let safe = cpus as f64 / 2.0;
    params.rps_target.map_or(safe, |target| safe.min(target * latency))
}

/// A folder that only this process uses, on a disk.
fn default_dir() -> PathBuf {
    PathBuf::from(format!("/var/tmp/weighbridge-hashd.{}", std::process::id()))
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
    /// Since the start, as of the last period.
    cpu: CpuTimes,
    done: u64,
    /// How often the parameters have changed.
    changes: u64,
    /// The parameters changed in this period, which therefore does not count for the controllers.
    has_new_params: bool,
    /// Whether additions to the footprint are filled, by the threads in `fillers`.
    fill: bool,
    fillers: Vec<JoinHandle<()>>,
}

impl ControlThread {
    fn run(mut self, commands: &Receiver<Command>, on_event: &mut impl FnMut(HashdEvent)) {
        self.cpu = self.cpu_times();
        self.window_start = Instant::now();
        loop {
            let period = Duration::from(self.params.control_period);
            let wait = (self.window_start + period).saturating_duration_since(Instant::now());
            match commands.recv_timeout(wait) {
                Ok(Command::SetParams(params, files)) => self.set_params(*params, files),
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
        // A panic of a filler has been printed.
        self.fillers.drain(..).for_each(|filler| drop(filler.join()));
        // So that every completed request is in a report.
        let report = self.close_period();
        if report.completed > 0 {
            on_event(HashdEvent::Report(Box::new(report)));
        }
    }

    fn set_params(&mut self, params: HashdParams, files: Arc<TestFiles>) {
        self.params = params;
        self.control.set_params(&self.params);
        let model = Arc::new(RequestModel::new(&self.params, self.seed));
        self.shared.set_requests(Requests { model, files });
        self.apply_footprint();
        if self.fill
            && let Err(error) = self.fill_in_background()
        {
            self.shared.failures.record(error.to_string());
        }
        self.apply_concurrency();
        self.changes += 1;
        self.has_new_params = true;
    }

    fn fill_in_background(&mut self) -> Result<(), HashdError> {
        self.fillers.retain(|filler| !filler.is_finished());
        let (shared, files) = (self.shared.clone(), self.shared.requests().files);
        let file_pages = shared.file_pages.load(Ordering::Relaxed);
        let plan = FillPlan::new(&shared.memory, file_pages, resident_bytes());
        let fill = move || {
            if let Err(error) = plan.fill(&shared.memory, &files, &|| shared.is_stopping())
                && !matches!(error, HashdError::Cancelled)
            {
                shared.failures.record(error.to_string());
            }
            shared.fillers.fetch_sub(1, Ordering::Relaxed);
        };
        self.shared.fillers.fetch_add(1, Ordering::Relaxed);
        let builder = thread::Builder::new().name("hashd-fill".to_owned());
        let filler = builder.spawn(fill).map_err(|source| {
            self.shared.fillers.fetch_sub(1, Ordering::Relaxed);
            HashdError::Thread { source }
        });
        self.fillers.push(filler?);
        Ok(())
    }

    fn apply_footprint(&self) {
        let pages = self.sizes.file_pages(&self.params, self.shared.requests().files.pages());
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
        let latency = LatencyQuantiles::new(&self.window, self.params.lat_quantile);
        let cpu = self.cpu_times();
        let report = HashdReport {
            time: (now - self.shared.start).as_secs_f64(),
            unix_time: unix_time(),
            period,
            completed,
            done: self.done,
            rps,
            changes: self.changes,
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
            is_filling: self.shared.fillers.load(Ordering::Relaxed) > 0,
            backlog: self.backlog().0,
            dropped: self.backlog().1,
            errors: self.shared.failures.count(),
            error: self.shared.failures.last(),
            cpu: difference(cpu, self.cpu),
        };
        self.cpu = cpu;
        self.shared.memory.release_unused();
        if !std::mem::take(&mut self.has_new_params) && !self.shared.is_stopping() {
            let mean_latency = (completed > 0).then(|| Duration::from_secs_f64(self.window.mean() / 1e6));
            let latency = latency.map(|latency| Duration::from_secs_f64(latency.control));
            let measurement = Measurement { rps, latency, mean_latency, in_flight: in_flight as usize };
            self.control.update(&self.params, measurement);
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

    /// Numbers of waiting and of dropped requests.
    fn backlog(&self) -> (u64, u64) {
        match &self.workers {
            Workers::Closed(_) => (0, 0),
            Workers::Open(workers) => (workers.backlog(), workers.dropped()),
        }
    }

    /// Since the start.
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

    use wb_model::{Bytes, Nanos};

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
        hashd.set_params(changed, &|| false).unwrap();
        let report = wait_for(&events, |report| report.rps_target == Some(30.0));
        assert_eq!(
            (report.file_bytes, report.anon_bytes),
            (first.file_bytes.div_ceil(2) / 4096 * 4096, first.anon_bytes / 2)
        );
        wait_for(&events, |report| report.rps < 60.0);
        let refused =
            |params: HashdParams, hashd: &mut Hashd| hashd.set_params(params, &|| false).unwrap_err().to_string();
        let open = HashdParams {
            open_loop: Some(OpenLoop { rate: 5.0, arrivals: Default::default() }),
            ..config.params.clone()
        };
        assert_eq!(refused(open, &mut hashd), "invalid open-loop `5`: expected none, as at the start");
        assert_eq!(hashd.params().rps_target, Some(30.0));
    }

    #[test]
    fn files_grow_beyond_those_at_the_start_and_are_filled() {
        let parent = tempfile::tempdir().unwrap();
        let config = config(parent.path());
        let (mut hashd, events) = start(&config);
        let first = wait_for(&events, |report| report.done > 0);
        let larger = HashdParams { file_frac: 0.9, mem_frac: 1.0, ..config.params.clone() };
        hashd.set_params(larger, &|| false).unwrap();
        let report = wait_for(&events, |report| report.file_bytes > 4 * first.file_bytes);
        assert_eq!(report.file_bytes, ((8 << 20) as f64 * 0.9) as u64 / 4096 * 4096);
        let report = wait_for(&events, |report| !report.is_filling && report.done > first.done + 50);
        assert_eq!(report.errors, 0);
        assert!(report.changes == 1, "{report:?}");
        let cancelled = HashdParams { file_frac: 1.0, ..config.params.clone() };
        assert!(matches!(hashd.set_params(cancelled, &|| true), Err(HashdError::Cancelled)));
    }

    #[test]
    fn footprint_is_filled_before_the_start_by_default() {
        let parent = tempfile::tempdir().unwrap();
        let mut config = config(parent.path());
        config.params.rps_target = Some(0.5);
        config.params.anon_size_ratio = 0.0;
        config.memory = Some(Bytes(256 << 20));
        let resident = |config: &HashdConfig| {
            let (_hashd, events) = start(config);
            let report = next_report(&events);
            (report.resident_bytes, report.anon_bytes)
        };
        let (empty, _) = resident(&HashdConfig { fill: false, ..config.clone() });
        let (filled, anon) = resident(&config);
        assert!(filled >= empty + anon / 2, "{filled}, {empty} of {anon}");
        // So is what is added later.
        config.params.mem_frac = 0.1;
        let (mut hashd, events) = start(&config);
        hashd.set_params(HashdParams { mem_frac: 0.8, ..config.params.clone() }, &|| false).unwrap();
        let grown = wait_for(&events, |report| report.changes == 1 && !report.is_filling).resident_bytes;
        assert!(grown >= empty + anon / 2, "{grown}, {empty} of {anon}");
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
}
