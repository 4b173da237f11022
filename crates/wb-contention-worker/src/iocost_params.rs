//! `iocost-params`: a model of a device's costs, and its latencies close to its limit, by the procedure of
//! `iocost_coef_gen.py` of resctl-demo (Heo, Newell).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, IocostModel, IocostQos, Nanos};
use wb_workloads::fio::histogram::Histogram;
use wb_workloads::fio::job::Operation;
use wb_workloads::fio::report::JobReport;

use super::ContentionError;
use super::device::BlockDevice;
use super::fio_load::{FioLoad, TestFile};
use super::prepared_worker::PreparedWorker;

/// Block size of the loads that determine operations per second.
const SMALL: Bytes = Bytes(4096);
/// Load at which latencies are determined, relative to the maximum.
const LOAD: f64 = 0.9;
/// Latency target, relative to the latency at that load.
const MARGIN: f64 = 1.5;
/// Bounds of the rate, in percent of the model.
const RATE_LIMITS: [f64; 2] = [60.0, 100.0];

/// How a device is measured
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct IocostParamsConfig {
    /// Duration of each of the eight loads
    pub runtime: Nanos,
    /// Size of the test file
    pub file_size: Bytes,
    /// Block size of the loads that determine bandwidths, with one request in flight per job
    pub sequential_block: Bytes,
    /// Requests in flight per job, for operations per second
    pub iodepth: u32,
    /// Parallel jobs; by default 8, and 1 for a rotating disk
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
}

impl Default for IocostParamsConfig {
    fn default() -> Self {
        Self {
            runtime: Nanos(60_000_000_000),
            file_size: Bytes(16 << 30),
            sequential_block: Bytes(128 << 20),
            iodepth: 256,
            jobs: None,
        }
    }
}

/// Parallel jobs on a device without rotating disks
const JOBS: u32 = 8;

impl IocostParamsConfig {
    /// The defaults, with smaller blocks if the buffers of all jobs would take more than a quarter of this memory.
    pub fn for_memory(memory: Bytes) -> Self {
        let default = Self::default();
        let most = memory.0 / 4 / u64::from(JOBS);
        Self { sequential_block: Bytes(default.sequential_block.0.min(most / SMALL.0 * SMALL.0)), ..default }
    }
}

/// Parameters of a device
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IocostParams {
    /// What it can do
    pub model: IocostModel,
    /// The latencies to keep
    pub qos: IocostQos,
}

/// A step of the measurement. Each can be measured alone, so that a bench can go on where it was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ParamStep {
    /// Sequential writes, in bytes per second
    Wbps,
    /// Sequential reads, in bytes per second
    Rbps,
    /// Sequential writes, in operations per second
    Wseqiops,
    /// Sequential reads, in operations per second
    Rseqiops,
    /// Random writes, in operations per second
    Wrandiops,
    /// Random reads, in operations per second
    Rrandiops,
    /// Latency of random reads close to the limit, in microseconds
    Rlat,
    /// Latency of random writes close to the limit, in microseconds
    Wlat,
}

impl ParamStep {
    pub const ALL: [Self; 8] = [
        Self::Wbps,
        Self::Rbps,
        Self::Wseqiops,
        Self::Rseqiops,
        Self::Wrandiops,
        Self::Rrandiops,
        Self::Rlat,
        Self::Wlat,
    ];
}

/// What was measured so far: one figure for each step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct IocostParamsProgress(pub std::collections::BTreeMap<ParamStep, f64>);

impl IocostParamsProgress {
    pub fn next(&self) -> Option<ParamStep> {
        ParamStep::ALL.into_iter().find(|step| !self.0.contains_key(step))
    }

    fn figure(&self, step: ParamStep) -> Option<u64> {
        self.0.get(&step).map(|figure| figure.round() as u64)
    }

    /// `None` until all steps are done.
    pub fn params(&self, device: &BlockDevice) -> Option<IocostParams> {
        let percentile = latency_percentile(device);
        let latency = |step| self.0.get(&step).map(|latency| (latency * MARGIN).round() as u64);
        Some(IocostParams {
            model: IocostModel {
                rbps: self.figure(ParamStep::Rbps)?,
                rseqiops: self.figure(ParamStep::Rseqiops)?,
                rrandiops: self.figure(ParamStep::Rrandiops)?,
                wbps: self.figure(ParamStep::Wbps)?,
                wseqiops: self.figure(ParamStep::Wseqiops)?,
                wrandiops: self.figure(ParamStep::Wrandiops)?,
            },
            qos: IocostQos {
                rpct: percentile,
                rlat: latency(ParamStep::Rlat)?,
                wpct: percentile,
                wlat: latency(ParamStep::Wlat)?,
                min: RATE_LIMITS[0],
                max: RATE_LIMITS[1],
            },
        })
    }
}

/// The percentile that is controlled: the median for a rotating disk, whose latencies vary by orders of magnitude.
fn latency_percentile(device: &BlockDevice) -> f64 {
    if device.rotational { 50.0 } else { 95.0 }
}

/// Measures the steps that `progress` lacks; calls `checkpoint` after each, so that `progress` keeps them on failure.
/// The I/O cost controller must be off for the device. Fails if the device has not enough space.
pub async fn measure(
    prepared: &PreparedWorker,
    config: &IocostParamsConfig,
    progress: &mut IocostParamsProgress,
    mut checkpoint: impl FnMut(&IocostParamsProgress),
) -> Result<IocostParams, ContentionError> {
    if progress.next().is_some() {
        if prepared.enforcement().io {
            // Merged requests would count as one.
            prepared.set(&prepared.device().queue("nomerges"), "1".to_owned()).await?;
        }
        let file = TestFile::create(prepared, config.file_size).await?;
        if prepared.enforcement().file_system {
            trim(prepared).await?;
        }
        let measured = async {
            while let Some(step) = progress.next() {
                let load = load(step, config, prepared.device(), progress);
                let report = file.run(prepared, &load).await?;
                progress.0.insert(step, figure(step, &load, &report, prepared.device())?);
                checkpoint(progress);
            }
            Ok(())
        };
        let measured: Result<(), ContentionError> = measured.await;
        file.remove(prepared).await?;
        measured?;
    }
    progress.params(prepared.device()).ok_or_else(|| ContentionError::output("fio", "a figure is missing"))
}

/// Discards unused blocks, which some devices need for their full speed.
async fn trim(prepared: &PreparedWorker) -> Result<(), ContentionError> {
    let command = wb_agent::Command::new(["fstrim", prepared.folder()]);
    // A device that cannot be trimmed does not need it.
    prepared.group().spawn(command).await?.wait(None).await?;
    Ok(())
}

fn load(step: ParamStep, config: &IocostParamsConfig, device: &BlockDevice, done: &IocostParamsProgress) -> FioLoad {
    use ParamStep::*;
    let operation = match step {
        Rbps | Rseqiops | Rrandiops | Rlat => Operation::Read,
        Wbps | Wseqiops | Wrandiops | Wlat => Operation::Write,
    };
    let is_bandwidth = matches!(step, Rbps | Wbps);
    let jobs = config.jobs.unwrap_or(if device.rotational { 1 } else { JOBS });
    let maximum = match step {
        Rlat => done.0.get(&Rrandiops),
        Wlat => done.0.get(&Wrandiops),
        _ => None,
    };
    FioLoad {
        operation,
        is_random: !matches!(step, Rbps | Wbps | Rseqiops | Wseqiops),
        block_size: if is_bandwidth { config.sequential_block } else { SMALL },
        iodepth: if is_bandwidth { 1 } else { config.iodepth },
        jobs,
        runtime: config.runtime,
        rate_iops: maximum.map(|iops| ((iops * LOAD / f64::from(jobs)) as u64).max(1)),
    }
}

fn figure(step: ParamStep, load: &FioLoad, report: &JobReport, device: &BlockDevice) -> Result<f64, ContentionError> {
    let operation = report.operation(load.operation);
    Ok(match step {
        ParamStep::Rbps | ParamStep::Wbps => operation.bytes_per_second(),
        ParamStep::Rlat | ParamStep::Wlat => {
            let mut latencies = Histogram::default();
            latencies.merge(operation.clat_ns.bins.iter().map(|(latency, count)| (*latency, *count)));
            let latency = latencies.percentile(latency_percentile(device));
            latency.ok_or_else(|| ContentionError::output("fio", "it has no latencies"))? as f64 / 1000.0
        }
        _ => operation.ios_per_second(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(rotational: bool) -> BlockDevice {
        BlockDevice {
            name: "nvme0n1".to_owned(),
            number: "259:0".to_owned(),
            model: String::new(),
            firmware: String::new(),
            size: Bytes(1 << 30),
            rotational,
            scheduler: "none".to_owned(),
            wbt_microseconds: 0,
            composite: false,
        }
    }

    #[test]
    fn documented_loads_are_those_that_run() {
        let docs = include_str!("../../../docs/contention.md");
        let IocostParamsConfig { runtime, sequential_block, iodepth, .. } = IocostParamsConfig::default();
        let (mib, seconds) = (sequential_block.0 >> 20, runtime.0 / 1_000_000_000);
        let jobs = format!("{JOBS} jobs (one on a rotating disk)");
        let depths =
            format!("{mib} MiB, one in flight for each job; operations of 4 KiB with {iodepth} in flight for each");
        for text in [jobs, depths, format!("{seconds} s each")] {
            assert!(docs.contains(&text), "{text}");
        }
    }

    #[test]
    fn loads_are_those_of_the_coefficients() {
        let config = IocostParamsConfig::default();
        let done = IocostParamsProgress([(ParamStep::Wrandiops, 1000.0)].into());
        let load = |step, rotational| load(step, &config, &device(rotational), &done);
        let bandwidth = load(ParamStep::Rbps, false);
        assert_eq!((bandwidth.block_size, bandwidth.iodepth, bandwidth.jobs), (Bytes(128 << 20), 1, 8));
        assert!(!bandwidth.is_random && bandwidth.rate_iops.is_none());
        let latency = load(ParamStep::Wlat, true);
        assert_eq!((latency.block_size, latency.iodepth, latency.rate_iops), (Bytes(4096), 256, Some(900)));
        assert!(latency.is_random && latency.operation == Operation::Write);
    }

    #[test]
    fn targets_have_a_margin_over_the_latency_close_to_the_limit() {
        let steps = ParamStep::ALL.into_iter().zip(1..).map(|(step, number)| (step, f64::from(number) * 100.0));
        let mut progress = IocostParamsProgress(steps.collect());
        assert_eq!(progress.next(), None);
        let params = progress.params(&device(false)).unwrap();
        assert_eq!(params.qos.to_string(), "rpct=95.00 rlat=1050 wpct=95.00 wlat=1200 min=60.00 max=100.00");
        assert_eq!(params.model.to_string(), "rbps=200 rseqiops=400 rrandiops=600 wbps=100 wseqiops=300 wrandiops=500");
        assert_eq!(progress.params(&device(true)).unwrap().qos.rpct, 50.0);
        progress.0.remove(&ParamStep::Rseqiops);
        assert_eq!((progress.next(), progress.params(&device(false))), (Some(ParamStep::Rseqiops), None));
    }
}
