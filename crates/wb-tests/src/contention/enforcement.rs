//! Enforcement of weights: two readers of one device share it as the weights of their control groups say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};

use crate::fio::job::Operation;

use super::ContentionError;
use super::fio_load::{FioLoad, TestFile};
use super::prepared_worker::{PreparedWorker, Slice, SliceSettings};

/// Block size of the readers.
const BLOCK: Bytes = Bytes(4096);

/// What is read, and how long
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct EnforcementConfig {
    /// Weights of I/O of the two readers
    pub weights: [u32; 2],
    /// How long both read
    pub runtime: Nanos,
    /// Size of the test file
    pub file_size: Bytes,
    /// Requests that each has in flight
    pub iodepth: u32,
}

impl Default for EnforcementConfig {
    fn default() -> Self {
        Self { weights: [800, 100], runtime: Nanos(30_000_000_000), file_size: Bytes(1 << 30), iodepth: 64 }
    }
}

impl EnforcementConfig {
    /// The control groups of the readers, for [`super::Preparation::slices`].
    pub fn slices(&self) -> Vec<(Slice, SliceSettings)> {
        let settings = self.weights.map(|weight| SliceSettings { io_weight: Some(weight), ..SliceSettings::default() });
        [Slice::Workload, Slice::Sideload].into_iter().zip(settings).collect()
    }
}

/// What both readers got
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EnforcementResult {
    /// Operations per second of each reader
    pub iops: [f64; 2],
    /// Ratio of both
    pub ratio: f64,
    /// Ratio of the weights
    pub expected: f64,
}

/// Lets both readers read at the same time.
///
/// # Errors
/// If fio fails, or the device has not enough space.
pub async fn measure(
    prepared: &PreparedWorker,
    config: &EnforcementConfig,
) -> Result<EnforcementResult, ContentionError> {
    let load = FioLoad {
        operation: Operation::Read,
        is_random: true,
        block_size: BLOCK,
        iodepth: config.iodepth,
        jobs: 1,
        runtime: config.runtime,
        rate_iops: None,
    };
    let file = TestFile::create(prepared, config.file_size).await?;
    let measured = async {
        let first = file.start(prepared, Some(Slice::Workload), &load, 1).await?;
        let second = file.start(prepared, Some(Slice::Sideload), &load, 2).await?;
        Ok([file.finish(first, &load).await?, file.finish(second, &load).await?])
    };
    let reports: Result<_, ContentionError> = measured.await;
    file.remove(prepared).await?;
    let iops = reports?.map(|report| report.operation(Operation::Read).ios_per_second());
    let [first, second] = config.weights.map(f64::from);
    Ok(EnforcementResult { iops, ratio: iops[0] / iops[1], expected: first / second })
}
