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
use wb_sys::proc::meminfo;

use super::files::read_or_empty;
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
    /// How long each hog runs
    pub hog_time: Nanos,
    /// How long hashd may take to reach its load
    pub warm_up: Nanos,
}

impl ProtectionConfig {
    /// The defaults of resctl-bench: full load, two hogs of five minutes that grow twice as fast as the device can write.
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
            warm_up: Nanos(600_000_000_000),
        }
    }

    /// The rate that hashd has to keep.
    ///
    /// # Errors
    /// If `rps-max` is not given.
    pub fn target(&self) -> Result<f64, ContentionError> {
        let rps_max = self.hashd.params.rps_max;
        let rps_max = rps_max.ok_or_else(|| ContentionError::output("hashd", "its parameters have no rps-max"))?;
        Ok(rps_max * self.load)
    }
}

/// The control groups of this bench, for [`super::Preparation::slices`]: the workload with memory that is protected from
/// the other one, or without.
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

/// Lets the hogs run that `record` lacks, and calls `checkpoint` after each. The control groups of [`slices`] must exist.
///
/// # Errors
/// If hashd does not reach its load, or ends before a hog has started; what is recorded before stays in `record`.
pub async fn measure(
    prepared: &PreparedWorker,
    config: &ProtectionConfig,
    record: &mut ProtectionRecord,
    mut checkpoint: impl FnMut(&ProtectionRecord),
) -> Result<protection_study::ProtectionResult, ContentionError> {
    record.target = config.target()?;
    while record.runs.len() < config.loops as usize {
        run_hog(prepared, config, record).await?;
        checkpoint(record);
    }
    protection_study::study(record)
        .ok_or_else(|| ContentionError::output("hashd", "it has completed no request before the hog"))
}

async fn run_hog(
    prepared: &PreparedWorker,
    config: &ProtectionConfig,
    record: &mut ProtectionRecord,
) -> Result<(), ContentionError> {
    let mut hashd_config = config.hashd.clone();
    hashd_config.params.rps_target = Some(record.target);
    let hashd = Hashd::hashd(prepared, &hashd_config).await?;
    stabilize(prepared, &hashd, record.target, config.warm_up).await?;
    if record.baseline.is_empty() {
        let before = hashd.reports::<HashdReport>().await?.len();
        sleep(config.baseline.into()).await;
        hashd.require_running(prepared).await?;
        record.baseline = hashd.reports::<HashdReport>().await?.split_off(before);
    }
    let reports: Vec<HashdReport> = hashd.reports().await?;
    let (before, start) = (reports.len(), reports.last().map_or(0.0, |report| report.time));
    let max_bytes = match config.hog_max {
        Some(max) => max.0,
        None => hog_limit(prepared).await?,
    };
    let hog = MemoryHogConfig { max_bytes, growth: Some(config.hog_growth), read: config.hog_reads };
    let hog = Reporter::memory_hog(prepared, Slice::Sideload, &hog).await?;
    let unix_start = unix_time();
    let mut io = Vec::new();
    let failure = observe(prepared, &hashd, &hog, config.hog_time, &mut io).await?;
    let hog_reports = hog.reports().await?;
    hog.kill().await?;
    let reports = hashd.finish::<HashdReport>().await?.split_off(before);
    let duration = Duration::from(config.hog_time).as_secs_f64();
    record.runs.push(HogRun { hashd: reports, start, unix_start, hog: hog_reports, io, duration, failure });
    Ok(())
}

/// Watches both until the time is over, or the hog ends (the kernel has killed it, which protects hashd, too). Returns
/// when and why hashd failed.
async fn observe(
    prepared: &PreparedWorker,
    hashd: &Hashd,
    hog: &Reporter,
    time: Nanos,
    io: &mut Vec<IoUsage>,
) -> Result<Option<(f64, String)>, ContentionError> {
    let start = Instant::now();
    while start.elapsed() < Duration::from(time) {
        sleep(POLL).await;
        let elapsed = start.elapsed().as_secs_f64();
        io.push(read_usage(prepared, elapsed).await?);
        match hashd.require_running(prepared).await {
            Ok(()) => {}
            Err(error @ ContentionError::Worker(_)) => return Err(error),
            Err(error) => return Ok(Some((elapsed, error.to_string()))),
        }
        if !hog.is_running(prepared).await? {
            break;
        }
    }
    Ok(None)
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
        swap: size(&memory, "SwapTotal").saturating_sub(size(&memory, "SwapFree")),
    })
}

/// Size up to which the hog grows.
async fn hog_limit(prepared: &PreparedWorker) -> Result<u64, ContentionError> {
    let text = read_or_empty(prepared.worker(), "/proc/meminfo").await?;
    Ok(((size(&text, "MemAvailable") + size(&text, "SwapFree")) as f64 * HOG_LIMIT) as u64)
}

/// A size of `/proc/meminfo`, in bytes; 0 if it is missing.
fn size(text: &str, name: &str) -> u64 {
    meminfo::size(text, name).map_or(0, |size| size.0)
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
    /// The footprints tried so far, from the largest on, each with the isolation that it had
    pub tried: Vec<(Bytes, f64)>,
    /// The footprint that was protected; none if none was, or not yet
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// What was recorded with the last footprint
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<ProtectionRecord>,
}

/// Reduces the footprint until hashd is protected, and calls `checkpoint` after each one.
///
/// # Errors
/// As for [`measure`].
pub async fn tune(
    prepared: &PreparedWorker,
    config: &ProtectionConfig,
    tune: &TuneConfig,
    record: &mut TuneRecord,
    mut checkpoint: impl FnMut(&TuneRecord),
) -> Result<(), ContentionError> {
    while record.size.is_none() && record.tried.len() < tune.intervals as usize {
        let size = tune.size(record.tried.len());
        let mut config = config.clone();
        config.loops = 1;
        config.hashd.memory = Some(size);
        config.hashd.params.mem_frac = 1.0;
        let mut last = ProtectionRecord::default();
        let result = measure(prepared, &config, &mut last, |_| ()).await?;
        let isolation = result.isolation_percentile(tune.isolation_percentile);
        record.tried.push((size, isolation));
        record.last = Some(last);
        if isolation >= tune.isolation_threshold {
            record.size = Some(size);
        }
        checkpoint(record);
    }
    Ok(())
}

impl TuneConfig {
    /// The footprint of a try.
    fn size(&self, number: usize) -> Bytes {
        let range = self.size_max.0.saturating_sub(self.size_min.0) as f64;
        let less = range / f64::from(self.intervals.max(1)) * number as f64;
        Bytes(self.size_max.0.saturating_sub(less.round() as u64).max(self.size_min.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footprints_are_tried_from_the_largest_on() {
        let tune = TuneConfig {
            size_max: Bytes(1000),
            size_min: Bytes(500),
            intervals: 5,
            isolation_percentile: 1.0,
            isolation_threshold: 0.9,
        };
        assert_eq!([0, 1, 4].map(|number| tune.size(number).0), [1000, 900, 600]);
    }

    #[test]
    fn without_protection_the_workload_has_only_weights() {
        let low = |slices: Vec<(Slice, SliceSettings)>| slices[0].1.memory_low;
        assert_eq!(low(slices(None)), None);
        assert_eq!(low(slices(Some(Bytes(1)))), Some(Bytes(1)));
    }
}
