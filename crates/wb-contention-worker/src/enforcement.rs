//! Enforcement of weights: two readers of one device share it by the weights of their control groups.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use wb_agent::signal::SIGKILL;
use wb_model::{Bytes, Nanos};
use wb_workloads::fio::job::Operation;

use super::ContentionError;
use super::fio_load::{FioLoad, TestFile};
use super::prepared_worker::{PreparedWorker, Slice, SliceSettings};

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
    /// For [`super::Preparation::slices`].
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

/// Both read for this time before operations are counted.
const SETTLE: Duration = Duration::from_secs(2);
/// How long both may take to start.
const START_LIMIT: Nanos = Nanos(60_000_000_000);

/// Lets both readers read, and counts only what they read at the same time: one that reads alone gets everything. Fails
/// if the device has not enough space.
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
        // They are ended when enough was counted.
        runtime: Nanos(config.runtime.0.saturating_add(2 * START_LIMIT.0)),
        rate_iops: None,
    };
    let file = TestFile::create(prepared, config.file_size).await?;
    let counted = count(prepared, config, &file, &load).await;
    file.remove(prepared).await?;
    let iops = counted?;
    let [first, second] = config.weights.map(f64::from);
    Ok(EnforcementResult { iops, ratio: iops[0] / iops[1], expected: first / second })
}

async fn count(
    prepared: &PreparedWorker,
    config: &EnforcementConfig,
    file: &TestFile,
    load: &FioLoad,
) -> Result<[f64; 2], ContentionError> {
    let first = file.start(prepared, Some(Slice::Workload), load, 1).await?;
    let second = file.start(prepared, Some(Slice::Sideload), load, 2).await?;
    let start = Instant::now();
    let initial = read_operations(prepared).await?;
    while read_operations(prepared).await?.iter().zip(initial).any(|(now, before)| *now == before) {
        if start.elapsed() > Duration::from(START_LIMIT) {
            let reason = "it has read nothing within a minute".to_owned();
            return Err(ContentionError::Process { program: "fio".to_owned(), reason });
        }
        sleep(SETTLE / 4).await;
    }
    sleep(SETTLE).await;
    let (begin, before) = (Instant::now(), read_operations(prepared).await?);
    sleep(config.runtime.into()).await;
    let (after, seconds) = (read_operations(prepared).await?, begin.elapsed().as_secs_f64());
    for process in [first, second] {
        process.signal(SIGKILL).await?;
        process.wait(None).await?;
    }
    Ok([0, 1].map(|reader: usize| after[reader].saturating_sub(before[reader]) as f64 / seconds))
}

async fn read_operations(prepared: &PreparedWorker) -> Result<[u64; 2], ContentionError> {
    let mut operations = [0; 2];
    for (count, slice) in operations.iter_mut().zip([Slice::Workload, Slice::Sideload]) {
        let text = prepared.io_stat(&prepared.slice_path(slice)).await?;
        *count = text.get("rios").and_then(|reads| reads.parse().ok()).unwrap_or_default();
    }
    Ok(operations)
}
