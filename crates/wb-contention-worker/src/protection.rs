//! `protection`: whether a memory hog can hurt a neighbour.
//!
//! hashd runs at a load; beside it, a process grows without limit ([`wb_kernels::memory_hog`]). The result is how much of
//! its rate hashd keeps, how much its latency rises, and how much of the device's time is lost by protecting it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use wb_hashd::{HashdConfig, HashdReport};
use wb_kernels::memory_hog::{MemoryHogConfig, MemoryHogReport};
use wb_model::{Bytes, Nanos};
use wb_sys::clock::unix_time;

use super::files::{meminfo_bytes, read_or_empty};
use super::prepared_worker::{IoStat, PreparedWorker, Slice, SliceSettings};
use super::workload::{Hashd, POLL, Reporter, stabilize};
use super::{ContentionError, protection_study};

/// Weights of CPU time and of I/O of the workload, and of what competes with it (the slices of resctl-demo).
const WORKLOAD_WEIGHTS: [u32; 2] = [100, 500];
const SIDELOAD_WEIGHTS: [u32; 2] = [10, 50];
/// Part of the free memory and swap that the hog may fill, unless its size is given.
const HOG_LIMIT: f64 = 0.8;

/// How a memory hog is let loose
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProtectionConfig {
    /// The workload; its `rps-max` is the rate of the full load
    pub hashd: HashdConfig,
    /// Load, relative to the full one
    pub load: f64,
    /// Number of hogs, one after the other
    pub loops: u32,
    /// Bytes per second by which the hog grows
    pub hog_growth: u64,
    /// Size up to which the hog grows; four fifths of the free memory and swap if not given, because a machine whose swap
    /// is full kills processes, which measures something else
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hog_max: Option<Bytes>,
    /// Whether the hog reads its memory again, rather than only growing
    pub hog_reads: bool,
    /// How long hashd is observed before the first hog
    pub baseline: Nanos,
    /// How long each hog runs, at most
    pub hog_time: Nanos,
    /// How long memory is contended before a hog is ended; until `hog-time` if not given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contended_time: Option<Nanos>,
    /// How long hashd may take to reach its load
    pub warm_up: Nanos,
}

impl ProtectionConfig {
    /// The defaults of resctl-bench: full load, two hogs of five minutes, which grow twice as fast as the device can
    /// write.
    pub fn new(hashd: HashdConfig, wbps: u64) -> Self {
        Self {
            hashd,
            load: 1.0,
            loops: 2,
            hog_growth: wbps.saturating_mul(2),
            hog_max: None,
            hog_reads: false,
            baseline: Nanos(15_000_000_000),
            hog_time: Nanos(300_000_000_000),
            contended_time: None,
            warm_up: Nanos(600_000_000_000),
        }
    }

    /// The configuration of [`tune()`]: a hog ends after 200 s of contended memory, which may take an hour to begin.
    #[must_use]
    pub fn probing(self) -> Self {
        Self { loops: 1, hog_time: Nanos(3_600_000_000_000), contended_time: Some(Nanos(200_000_000_000)), ..self }
    }

    /// The rate that hashd has to keep. Fails without `rps-max`.
    pub fn target(&self) -> Result<f64, ContentionError> {
        let rps_max = self.hashd.params.rps_max;
        let rps_max = rps_max.ok_or_else(|| ContentionError::output("hashd", "its parameters have no rps-max"))?;
        Ok(rps_max * self.load)
    }
}

/// The control groups of this bench, for [`super::Preparation::slices`]. Without `protected`, they have only weights.
pub fn slices(protected: Option<Bytes>) -> Vec<(Slice, SliceSettings)> {
    let weights =
        |[cpu, io]: [u32; 2]| SliceSettings { cpu_weight: Some(cpu), io_weight: Some(io), ..SliceSettings::default() };
    let workload = SliceSettings { memory_low: protected, ..weights(WORKLOAD_WEIGHTS) };
    vec![(Slice::Workload, workload), (Slice::Sideload, weights(SIDELOAD_WEIGHTS))]
}

/// Use of the device, from `io.stat`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoUsage {
    /// Time since the hog was started, in seconds
    pub time: f64,
    /// Rate at which the model is applied, relative to it; 1 without the I/O cost controller
    pub vrate: f64,
    /// Seconds of the device that everything has used; 0 without the controller
    pub total: f64,
    /// Seconds of the device that the hog has used
    pub hog: f64,
    /// Memory that the hog has, in bytes
    pub hog_memory: u64,
    /// Swap that the machine uses, in bytes
    pub swap: u64,
}

/// What was recorded with one hog
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HogRun {
    /// Reports of hashd while the hog ran
    pub hashd: Vec<HashdReport>,
    /// Time of hashd when the hog was started, in seconds
    pub start: f64,
    /// When the hog was started, in seconds since the epoch
    pub unix_start: f64,
    /// Reports of the hog
    pub hog: Vec<MemoryHogReport>,
    /// Use of the device
    pub io: Vec<IoUsage>,
    /// How long the hog should run, in seconds
    pub duration: f64,
    /// Why it ended early, and after how many seconds: the rest counts as not protected at all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<(f64, String)>,
}

/// What was recorded: the checkpoint of this bench, to which hogs are added
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ProtectionRecord {
    /// The rate that hashd has to keep
    pub target: f64,
    /// Reports of hashd before the first hog
    pub baseline: Vec<HashdReport>,
    /// The hogs
    pub runs: Vec<HogRun>,
}

/// Runs the hogs that `record` lacks; calls `checkpoint` after each, so that `record` keeps them on failure. The
/// control groups of [`slices`] must exist. Fails if hashd does not reach its load or ends before a hog has started, or
/// if a hog does not make the machine swap.
pub async fn measure(
    prepared: &PreparedWorker,
    config: &ProtectionConfig,
    record: &mut ProtectionRecord,
    mut checkpoint: impl FnMut(&ProtectionRecord),
) -> Result<protection_study::ProtectionResult, ContentionError> {
    record.target = config.target()?;
    while record.runs.len() < config.loops as usize {
        let run = run_hog(prepared, config, record, None).await?;
        require_contention(&run)?;
        record.runs.push(run);
        checkpoint(record);
    }
    study(record)
}

fn study(record: &ProtectionRecord) -> Result<protection_study::ProtectionResult, ContentionError> {
    protection_study::study(record)
        .ok_or_else(|| ContentionError::output("hashd", "it has completed no request before the hog"))
}

/// Refuses a run whose hog competed with nobody: its isolation would be perfect, and mean nothing.
fn require_contention(run: &HogRun) -> Result<(), ContentionError> {
    match protection_study::contended_from(run) {
        None if run.failure.is_none() => Err(ContentionError::NoContention),
        _ => Ok(()),
    }
}

/// Runs a hog beside hashd, which has ended when this returns.
async fn run_hog(
    prepared: &PreparedWorker,
    config: &ProtectionConfig,
    record: &mut ProtectionRecord,
    early_failure: Option<&mut EarlyFailure>,
) -> Result<HogRun, ContentionError> {
    let mut hashd_config = config.hashd.clone();
    hashd_config.params.rps_target = Some(record.target);
    let mut hashd = Hashd::hashd(prepared, &hashd_config).await?;
    match beside_hashd(prepared, config, record, &mut hashd, early_failure).await {
        Ok((run, before)) => {
            let reports = hashd.finish::<HashdReport>().await?.split_off(before);
            Ok(HogRun { hashd: reports, ..run })
        }
        Err(error) => {
            // The error is the cause: hashd may have ended by itself, or be lost with its worker.
            let _ = hashd.kill().await;
            Err(error)
        }
    }
}

/// Returns a run without the reports of hashd, and how many of these are from before it.
async fn beside_hashd(
    prepared: &PreparedWorker,
    config: &ProtectionConfig,
    record: &mut ProtectionRecord,
    hashd: &mut Hashd,
    early_failure: Option<&mut EarlyFailure>,
) -> Result<(HogRun, usize), ContentionError> {
    stabilize(prepared, hashd, record.target, config.warm_up).await?;
    if record.baseline.is_empty() {
        let before = hashd.reports::<HashdReport>().await?.len();
        sleep(config.baseline.into()).await;
        hashd.require_running(prepared).await?;
        record.baseline = hashd.reports::<HashdReport>().await?.split_off(before);
    }
    let reports: Vec<HashdReport> = hashd.new_reports().await?;
    let (before, start) = (reports.len(), reports.last().map_or(0.0, |report| report.time));
    let max_bytes = match config.hog_max {
        Some(max) => max.0,
        None => hog_limit(prepared).await?,
    };
    let hog = MemoryHogConfig { max_bytes, growth: Some(config.hog_growth), read: config.hog_reads };
    let hog = Reporter::memory_hog(prepared, Slice::Sideload, &hog).await?;
    let mut run = HogRun {
        hashd: Vec::new(),
        start,
        unix_start: unix_time(),
        hog: Vec::new(),
        io: Vec::new(),
        duration: seconds(config.hog_time),
        failure: None,
    };
    let observed = observe(prepared, config, hashd, &hog, early_failure, &mut run).await;
    let reports = hog.reports().await;
    hog.kill().await?;
    observed?;
    run.hog = reports?;
    Ok((run, before))
}

fn seconds(time: Nanos) -> f64 {
    Duration::from(time).as_secs_f64()
}

/// Watches both until the time is over, the footprint has failed early, or the hog ends (killed by the kernel, which
/// protects hashd, too).
async fn observe(
    prepared: &PreparedWorker,
    config: &ProtectionConfig,
    hashd: &mut Hashd,
    hog: &Reporter,
    mut early_failure: Option<&mut EarlyFailure>,
    run: &mut HogRun,
) -> Result<(), ContentionError> {
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < run.duration {
        sleep(POLL).await;
        let elapsed = start.elapsed().as_secs_f64();
        run.io.push(read_usage(prepared, elapsed).await?);
        let contended = protection_study::contended_from(run);
        if let (Some(begin), Some(time)) = (contended, config.contended_time) {
            run.duration = run.duration.min(begin + seconds(time));
        }
        match hashd.require_running(prepared).await {
            Ok(()) => {}
            Err(error @ ContentionError::Worker(_)) => return Err(error),
            Err(error) => {
                run.failure = Some((elapsed, error.to_string()));
                break;
            }
        }
        let reports: Vec<HashdReport> = hashd.new_reports().await?;
        if let (Some(early_failure), Some(_)) = (early_failure.as_deref_mut(), contended)
            && early_failure.is_reached(&reports)
        {
            break;
        }
        if !hog.is_running(prepared).await? {
            break;
        }
    }
    Ok(())
}

async fn read_usage(prepared: &PreparedWorker, time: f64) -> Result<IoUsage, ContentionError> {
    let memory = read_or_empty(prepared.worker(), "/proc/meminfo").await?;
    let root = prepared.io_stat(prepared.cgroup_point()).await?;
    let hog = prepared.io_stat(&prepared.slice_path(Slice::Sideload)).await?;
    let number = |figures: &IoStat, name: &str| figures.get(name).and_then(|value| value.parse::<f64>().ok());
    // In microseconds, and in percent.
    let seconds = |figures: &IoStat| number(figures, "cost.usage").unwrap_or(0.0) / 1e6;
    Ok(IoUsage {
        time,
        vrate: number(&root, "cost.vrate").map_or(1.0, |percent| percent / 100.0),
        total: seconds(&root),
        hog: seconds(&hog),
        hog_memory: prepared.memory_usage(Slice::Sideload).await?.0,
        swap: meminfo_bytes(&memory, "SwapTotal").saturating_sub(meminfo_bytes(&memory, "SwapFree")),
    })
}

async fn hog_limit(prepared: &PreparedWorker) -> Result<u64, ContentionError> {
    let text = read_or_empty(prepared.worker(), "/proc/meminfo").await?;
    Ok(((meminfo_bytes(&text, "MemAvailable") + meminfo_bytes(&text, "SwapFree")) as f64 * HOG_LIMIT) as u64)
}

/// How the largest footprint is determined that can be protected
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TuneConfig {
    /// The largest footprint
    pub size_max: Bytes,
    /// The smallest footprint
    pub size_min: Bytes,
    /// Number of intervals between both
    pub intervals: u32,
    /// Percentile of the isolation over the seconds, in percent, that decides
    pub isolation_percentile: f64,
    /// What it must reach
    pub isolation_threshold: f64,
}

/// The largest footprint that can be protected
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TuneRecord {
    /// The footprints tried so far, from the largest on, and what came of each
    pub tried: Vec<(Bytes, ProbeOutcome)>,
    /// The footprint that was protected; none if none was, or not yet
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// The last footprint beside which a hog ran for its whole time, and what was recorded
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<(Bytes, ProtectionRecord)>,
}

/// What came of a footprint
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeOutcome {
    /// The percentile of the isolation that decides
    Isolation(f64),
    /// More seconds were bad than may be, before the hog's time was over
    EarlyFailure,
    /// hashd did not start, did not become stable, or ended
    Failed(String),
    /// The machine did not swap: it says nothing about this footprint
    NoContention,
}

/// Counts the bad seconds of a footprint, which need not be observed any longer once it has had more than allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EarlyFailure {
    /// Requests per second below which a second is bad.
    rate: f64,
    /// Seconds that may be bad.
    allowed: f64,
    bad: f64,
}

impl EarlyFailure {
    /// Counts reports, and returns whether too many seconds were bad.
    fn is_reached(&mut self, reports: &[HashdReport]) -> bool {
        let bad = reports.iter().filter(|report| report.rps < self.rate).map(|report| report.period);
        self.bad += bad.sum::<f64>();
        self.bad > self.allowed
    }
}

/// The record of a hog beside a footprint; `None` if the hog failed early.
pub type Probe = Option<ProtectionRecord>;

/// Runs a hog beside a footprint of hashd; fails as [`measure`].
pub async fn probe(
    prepared: &PreparedWorker,
    config: &ProtectionConfig,
    footprint: Bytes,
    mut early_failure: Option<EarlyFailure>,
) -> Result<Probe, ContentionError> {
    let mut config = config.clone();
    config.hashd.memory = Some(footprint);
    config.hashd.params.mem_frac = 1.0;
    let mut record = ProtectionRecord { target: config.target()?, ..ProtectionRecord::default() };
    let run = run_hog(prepared, &config, &mut record, early_failure.as_mut()).await?;
    require_contention(&run)?;
    record.runs.push(run);
    let has_failed = early_failure.is_some_and(|failure| failure.bad > failure.allowed);
    Ok((!has_failed).then_some(record))
}

/// Reduces the footprint until the isolation at the percentile over the seconds suffices; calls `checkpoint` after each
/// footprint. `probe` runs a hog beside a footprint ([`probe()`]). If hashd does not start or become stable, the
/// footprint counts as not protected. Fails if the worker is lost, or no hog made the machine swap.
pub async fn tune(
    config: &ProtectionConfig,
    tune: &TuneConfig,
    record: &mut TuneRecord,
    mut probe: impl AsyncFnMut(Bytes, Option<EarlyFailure>) -> Result<Probe, ContentionError>,
    percentile: impl Fn(&[f64]) -> Option<f64>,
    mut checkpoint: impl FnMut(&TuneRecord),
) -> Result<(), ContentionError> {
    let early_failure = tune.early_failure(config)?;
    while record.size.is_none() && record.tried.len() < tune.intervals as usize {
        let number = record.tried.len();
        let size = tune.size(number);
        // The last one is observed for its whole time, so that there is something to show.
        let is_last = number + 1 == tune.intervals as usize;
        let probed = probe(size, (!is_last).then_some(early_failure)).await;
        let outcome = match probed.and_then(|probe| probe.map(|record| Ok((study(&record)?, record))).transpose()) {
            Ok(Some((result, last))) => {
                let isolation = percentile(&result.isolation).unwrap_or_default();
                record.last = Some((size, last));
                if isolation >= tune.isolation_threshold && result.failures.is_empty() {
                    record.size = Some(size);
                }
                ProbeOutcome::Isolation(isolation)
            }
            Ok(None) => ProbeOutcome::EarlyFailure,
            Err(ContentionError::NoContention) => ProbeOutcome::NoContention,
            Err(error) if error.concerns_workload() => ProbeOutcome::Failed(error.to_string()),
            Err(error) => return Err(error),
        };
        record.tried.push((size, outcome));
        checkpoint(record);
    }
    if record.tried.iter().all(|(_, outcome)| *outcome == ProbeOutcome::NoContention) {
        Err(ContentionError::NoContention)
    } else {
        Ok(())
    }
}

impl TuneConfig {
    /// Allows as many bad seconds as the percentile does in the time in which memory is contended.
    fn early_failure(&self, config: &ProtectionConfig) -> Result<EarlyFailure, ContentionError> {
        let time = seconds(config.contended_time.unwrap_or(config.hog_time));
        let allowed = (time * self.isolation_percentile / 100.0).ceil();
        Ok(EarlyFailure { rate: config.target()? * self.isolation_threshold, allowed, bad: 0.0 })
    }

    fn size(&self, number: usize) -> Bytes {
        let range = self.size_max.0.saturating_sub(self.size_min.0) as f64;
        let less = range / f64::from(self.intervals.max(1)) * number as f64;
        Bytes(self.size_max.0.saturating_sub(less.round() as u64).max(self.size_min.0))
    }
}

#[cfg(test)]
mod tests {
    use wb_hashd::HashdParams;

    use super::*;

    fn tune_config() -> TuneConfig {
        TuneConfig {
            size_max: Bytes(1000),
            size_min: Bytes(500),
            intervals: 5,
            isolation_percentile: 5.0,
            isolation_threshold: 0.9,
        }
    }

    fn config() -> ProtectionConfig {
        let params = HashdParams { rps_max: Some(100.0), ..HashdParams::default() };
        ProtectionConfig::new(HashdConfig { params, ..HashdConfig::default() }, 1).probing()
    }

    fn report(time: f64, rps: f64) -> HashdReport {
        let done = (time * rps) as u64;
        let latency = wb_hashd::LatencyQuantiles {
            min: 0.1,
            p50: 0.1,
            p90: 0.1,
            p95: 0.1,
            p99: 0.1,
            p999: 0.1,
            max: 0.1,
            control: 0.1,
        };
        HashdReport { time, period: 1.0, rps, done, latency: Some(latency), ..HashdReport::default() }
    }

    /// A hog beside hashd at a rate of 100, which reaches `rate`.
    fn recorded(rate: f64) -> ProtectionRecord {
        let usage =
            |time: f64| IoUsage { time, vrate: 1.0, total: 0.0, hog: 0.0, hog_memory: 0, swap: (time as u64) << 30 };
        let run = HogRun {
            hashd: (0..20).map(|second| report(f64::from(second), rate)).collect(),
            start: 0.0,
            unix_start: 0.0,
            hog: Vec::new(),
            io: vec![usage(0.0), usage(1.0)],
            duration: 20.0,
            failure: None,
        };
        ProtectionRecord { target: 100.0, baseline: vec![report(1.0, 100.0)], runs: vec![run] }
    }

    /// Tunes with one outcome after the other.
    async fn tuned(
        outcomes: impl IntoIterator<Item = Result<Probe, ContentionError>>,
    ) -> (TuneRecord, Result<(), ContentionError>, Vec<bool>) {
        let (mut record, mut outcomes, mut may_end_early) = (TuneRecord::default(), outcomes.into_iter(), Vec::new());
        let probe = async |_, early_failure: Option<EarlyFailure>| {
            may_end_early.push(early_failure.is_some());
            outcomes.next().unwrap()
        };
        let smallest = |isolation: &[f64]| isolation.iter().copied().reduce(f64::min);
        let ended = tune(&config(), &tune_config(), &mut record, probe, smallest, |_| ()).await;
        (record, ended, may_end_early)
    }

    fn unstable() -> ContentionError {
        ContentionError::Unstable { reached: 1.0, target: 2.0, seconds: 3 }
    }

    #[test]
    fn footprints_are_tried_from_the_largest_on() {
        assert_eq!([0, 1, 4].map(|number| tune_config().size(number).0), [1000, 900, 600]);
    }

    #[tokio::test]
    async fn footprint_that_does_not_start_or_become_stable_has_failed_and_the_next_one_is_tried() {
        let killed = ContentionError::OutOfMemory { program: "hashd".to_owned(), group: "/g".to_owned() };
        let ended = ContentionError::Process { program: "hashd".to_owned(), reason: "it does not fit".to_owned() };
        let outcomes = [Err(unstable()), Err(killed), Err(ended), Ok(None), Ok(Some(recorded(100.0)))];
        let (record, ended, may_end_early) = tuned(outcomes).await;
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!(record.size, Some(Bytes(600)));
        assert_eq!(record.tried.len(), 5);
        assert_eq!(record.tried[3].1, ProbeOutcome::EarlyFailure);
        assert_eq!(may_end_early, [true, true, true, true, false], "the last one is observed for its whole time");
    }

    #[tokio::test]
    async fn last_footprint_that_was_observed_stays_if_none_is_protected() {
        let outcomes = [Ok(Some(recorded(10.0))), Err(unstable()), Err(unstable()), Ok(Some(recorded(50.0))), Ok(None)];
        let (record, ended, _) = tuned(outcomes).await;
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!((record.size, record.last.unwrap().0), (None, Bytes(700)));
        assert_eq!(record.tried[3].1, ProbeOutcome::Isolation(0.5));
    }

    #[tokio::test]
    async fn footprints_without_contention_do_not_count() {
        let none = || Err(ContentionError::NoContention);
        let (record, ended, _) = tuned([none(), Ok(Some(recorded(95.0)))]).await;
        assert!(ended.is_ok() && record.size == Some(Bytes(900)), "{record:?}");
        let (record, ended, _) = tuned([none(), none(), none(), none(), none()]).await;
        assert!(matches!(ended, Err(ContentionError::NoContention)), "{ended:?}");
        assert_eq!(record.tried.len(), 5);
    }

    #[tokio::test]
    async fn worker_that_is_lost_says_nothing_about_a_footprint() {
        let full = ContentionError::NoSpace { path: "/d".to_owned(), required: Bytes(1) };
        let (record, ended, _) = tuned([Err(full)]).await;
        assert!(matches!(ended, Err(ContentionError::NoSpace { .. })) && record.tried.is_empty(), "{ended:?}");
    }

    #[test]
    fn footprint_fails_early_after_more_bad_seconds_than_the_percentile_leaves() {
        // 5 % of 200 s.
        let mut failure = tune_config().early_failure(&config()).unwrap();
        let bad: Vec<HashdReport> = (0..10).map(|second| report(f64::from(second), 89.0)).collect();
        assert!(!failure.is_reached(&bad));
        assert!(!failure.is_reached(&[report(10.0, 90.0)]));
        assert!(failure.is_reached(&[report(11.0, 89.0)]));
    }

    #[test]
    fn hog_that_never_made_the_machine_swap_is_an_error() {
        let mut run = recorded(100.0).runs.remove(0);
        assert!(require_contention(&run).is_ok());
        run.io.truncate(1);
        let error = require_contention(&run).unwrap_err();
        assert!(error.to_string().contains("swap usage stayed zero"), "{error}");
    }

    #[test]
    fn without_protection_the_workload_has_only_weights() {
        let low = |slices: Vec<(Slice, SliceSettings)>| slices[0].1.memory_low;
        assert_eq!(low(slices(None)), None);
        assert_eq!(low(slices(Some(Bytes(1)))), Some(Bytes(1)));
    }
}
