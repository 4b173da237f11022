//! `storage`: how much of its memory a workload can leave to the device.
//!
//! The footprint that hashd can serve within its latency is determined while a balloon leaves it the memory of a
//! profile. The memory offloading factor (MOF) is that footprint, relative to the memory that hashd had.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use wb_kernels::memory_hog::{MemoryHogConfig, MemoryHogReport};
use wb_model::Bytes;
use wb_stats::Samples;

use super::ContentionError;
use super::files::{meminfo_bytes, read_or_empty};
use super::memory_profile::{MemoryProfile, MemoryShare};
use super::prepared_worker::{PreparedWorker, Slice, SliceSettings};
use super::workload::{Balloon, POLL, Reporter};

/// How storage is measured
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct StorageConfig {
    /// Number of sizings, of which the mean is taken
    pub loops: u32,
    /// Deviation of the memory that hashd had from the target, at which a sizing is invalid
    pub mem_avail_err_max: f64,
    /// Number of times that a sizing is repeated without determining the available memory again
    pub mem_avail_inner_retries: u32,
    /// Number of times that everything is repeated with another amount of available memory
    pub mem_avail_outer_retries: u32,
}

impl Default for StorageConfig {
    fn default() -> Self {
        Self { loops: 3, mem_avail_err_max: 0.1, mem_avail_inner_retries: 2, mem_avail_outer_retries: 2 }
    }
}

/// Result of one sizing
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sizing {
    /// The largest footprint that was served within the latency
    pub size: Bytes,
    /// The memory that hashd had then
    pub usage: Bytes,
}

/// What was recorded: the checkpoint of this bench, to which sizings are added
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageRecord {
    /// Available memory and the share of the profile
    pub memory: MemoryShare,
    /// Valid sizings
    pub sizings: Vec<Sizing>,
    /// How available memory was corrected
    pub correction: Correction,
}

impl StorageRecord {
    pub fn new(memory: MemoryShare) -> Self {
        Self { memory, sizings: Vec::new(), correction: Correction::default() }
    }

    /// The factor; none without a sizing.
    pub fn result(&self) -> Option<StorageResult> {
        let values = |of: fn(&Sizing) -> Bytes| {
            let values: Vec<f64> = self.sizings.iter().map(|sizing| of(sizing).0 as f64).collect();
            Samples::new(&values).ok()
        };
        let (size, usage) = (values(|sizing| sizing.size)?, values(|sizing| sizing.usage)?);
        let bytes = |value: f64| Bytes(value.round() as u64);
        Some(StorageResult {
            mem_offload_factor: size.mean() / usage.mean(),
            size: bytes(size.mean()),
            size_stdev: bytes(size.stddev().unwrap_or(0.0)),
            usage: bytes(usage.mean()),
            usage_stdev: bytes(usage.stddev().unwrap_or(0.0)),
        })
    }
}

/// How much of its memory a workload can leave to the device
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageResult {
    /// Supported footprint, relative to memory
    pub mem_offload_factor: f64,
    /// Mean of the footprints
    pub size: Bytes,
    /// Their standard deviation; 0 for one
    pub size_stdev: Bytes,
    /// Mean of the memory
    pub usage: Bytes,
    /// Its standard deviation; 0 for one
    pub usage_stdev: Bytes,
}

/// The control groups of this bench, for [`super::Preparation::slices`]. Memory is not protected, because its reclaim
/// is what is measured.
pub fn slices() -> Vec<(Slice, SliceSettings)> {
    vec![(Slice::Workload, SliceSettings::default()), balloon_slice()]
}

/// All of a balloon's memory is protected, and none is swapped out.
pub fn balloon_slice() -> (Slice, SliceSettings) {
    let whole = Bytes(u64::MAX);
    let settings = SliceSettings { memory_min: Some(whole), swap_max: Some(Bytes(0)), ..SliceSettings::default() };
    (Slice::Balloon, settings)
}

/// Determines the memory that a workload can get: how much a process has when the kernel starts to swap it out. Fails
/// if the machine has no swap, so that swapping never starts.
pub async fn probe_available_memory(prepared: &PreparedWorker) -> Result<Bytes, ContentionError> {
    let text = read_or_empty(prepared.worker(), "/proc/meminfo").await?;
    // Half of the swap ends it before the machine runs out of memory.
    let max_bytes = meminfo_bytes(&text, "MemTotal") + meminfo_bytes(&text, "SwapFree") / 2;
    let config = MemoryHogConfig { max_bytes, growth: None, read: false };
    let hog = Reporter::memory_hog(prepared, Slice::Workload, &config).await?;
    let swap = format!("{}/memory.swap.current", prepared.slice_path(Slice::Workload));
    let mut largest = 0;
    loop {
        let usage = prepared.memory_usage(Slice::Workload).await?;
        let swapped: u64 = read_or_empty(prepared.worker(), &swap).await?.parse().unwrap_or_default();
        largest = largest.max(usage.0);
        let reports: Vec<MemoryHogReport> = hog.reports().await?;
        if swapped > Balloon::OVERHEAD || reports.last().is_some_and(|report| report.bytes >= max_bytes) {
            break;
        }
        hog.require_running(prepared).await?;
        sleep(POLL / 5).await;
    }
    hog.kill().await?;
    Ok(Bytes(largest))
}

/// Runs the sizings that `record` lacks, and calls `checkpoint` after each valid one. `size` determines the supported
/// footprint once; the balloon leaves it the target of the profile meanwhile. The control groups of [`slices`] must
/// exist. Fails if available memory keeps changing.
pub async fn measure(
    prepared: &PreparedWorker,
    config: &StorageConfig,
    record: &mut StorageRecord,
    mut size: impl AsyncFnMut(&PreparedWorker) -> Result<Sizing, ContentionError>,
    mut checkpoint: impl FnMut(&StorageRecord),
) -> Result<StorageResult, ContentionError> {
    while record.sizings.len() < config.loops.max(1) as usize {
        let balloon = Balloon::inflate(prepared, record.memory.sizing_balloon()).await?;
        let sizing = size(prepared).await;
        balloon.deflate().await?;
        let sizing = sizing?;
        match record.correction.judge(config, &record.memory, sizing.usage) {
            Verdict::Valid => record.sizings.push(sizing),
            Verdict::Repeat => continue,
            Verdict::StartOver(avail) => {
                let profile: Option<MemoryProfile> = record.memory.profile;
                record.memory = MemoryShare::new(profile, avail)?;
                record.sizings.clear();
            }
            Verdict::GiveUp => {
                let reason = "available memory keeps changing: keep the machine idle".to_owned();
                return Err(ContentionError::Output { program: "hashd".to_owned(), reason });
            }
        }
        checkpoint(record);
    }
    record.result().ok_or_else(|| ContentionError::output("hashd", "no sizing"))
}

/// How available memory was corrected so far
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Correction {
    /// Available memory by the last invalid sizing; none if the last one was valid
    last: Option<Bytes>,
    /// Repetitions since available memory was last corrected
    repeated: u32,
    /// Corrections of available memory
    corrected: u32,
}

/// What follows from the memory that hashd had in a sizing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Valid,
    Repeat,
    /// Everything is repeated with this available memory.
    StartOver(Bytes),
    GiveUp,
}

impl Correction {
    /// Compares the memory that hashd had with the target. The first deviation corrects available memory, later ones
    /// only if they agree, or after several repetitions (resctl-bench, `storage`).
    fn judge(&mut self, config: &StorageConfig, memory: &MemoryShare, usage: Bytes) -> Verdict {
        let target = memory.target.0 as f64;
        if ((usage.0 as f64 - target) / target).abs() <= config.mem_avail_err_max {
            self.last = None;
            return Verdict::Valid;
        }
        let avail = Bytes((memory.avail.0 + usage.0).saturating_sub(memory.target.0));
        let agrees = |last: Bytes| (avail.0 as f64 - last.0 as f64).abs() < config.mem_avail_err_max * avail.0 as f64;
        let is_first = self.corrected == 0 && self.last.is_none();
        let last = self.last.replace(avail);
        if !is_first && !last.is_some_and(agrees) && self.repeated < config.mem_avail_inner_retries {
            self.repeated += 1;
            return Verdict::Repeat;
        }
        if self.corrected == config.mem_avail_outer_retries {
            return Verdict::GiveUp;
        }
        self.corrected += 1;
        self.repeated = 0;
        Verdict::StartOver(avail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn memory(avail: u64) -> MemoryShare {
        MemoryShare::new(Some(MemoryProfile::try_from(1).unwrap()), Bytes(avail * MIB)).unwrap()
    }

    #[test]
    fn a_deviation_corrects_available_memory() {
        let (config, mut correction) = (StorageConfig::default(), Correction::default());
        // The target is 448 MiB.
        assert_eq!(correction.judge(&config, &memory(1000), Bytes(470 * MIB)), Verdict::Valid);
        let avail = Bytes(1152 * MIB);
        assert_eq!(correction.judge(&config, &memory(1000), Bytes(600 * MIB)), Verdict::StartOver(avail));
        // Another one is repeated first, and corrects again if it agrees with the one before.
        assert_eq!(correction.judge(&config, &memory(1152), Bytes(250 * MIB)), Verdict::Repeat);
        assert_eq!(correction.judge(&config, &memory(1152), Bytes(252 * MIB)), Verdict::StartOver(Bytes(956 * MIB)));
        assert_eq!(correction.judge(&config, &memory(956), Bytes(600 * MIB)), Verdict::Repeat);
        assert_eq!(correction.judge(&config, &memory(956), Bytes(600 * MIB)), Verdict::GiveUp);
    }

    #[test]
    fn mem_offload_factor_is_a_ratio_of_means() {
        let mut record = StorageRecord::new(memory(1000));
        assert_eq!(record.result(), None);
        record.sizings =
            vec![Sizing { size: Bytes(600), usage: Bytes(400) }, Sizing { size: Bytes(700), usage: Bytes(400) }];
        let result = record.result().unwrap();
        assert_eq!((result.mem_offload_factor, result.size, result.usage_stdev), (1.625, Bytes(650), Bytes(0)));
        assert_eq!(result.size_stdev, Bytes(71));
    }
}
