//! One stage of `iocost-qos`: storage and protection under given parameters of the I/O cost controller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_agent::Worker;
use wb_sys::cgroup::io_cost::{IocostModel, IocostQos};

use super::io_latency::{IoLatencySeries, LatencyWatch};
use super::prepared_worker::{IoControl, Preparation, PreparedWorker};
use super::protection::{self, ProtectionConfig, TuneConfig, TuneRecord};
use super::storage::{self, Sizing, StorageConfig, StorageRecord, StorageResult};
use super::{ContentionError, system};

/// Parameters of a stage
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StageConfig {
    /// The model of the device
    pub model: IocostModel,
    /// The targets and limits; none for a stage without the controller
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<IocostQos>,
    /// How storage is measured
    pub storage: StorageConfig,
    /// How hashd is disturbed
    pub protection: ProtectionConfig,
    /// Intervals, and what decides: its sizes are replaced by four fifths of the share and by the size of `storage`
    pub tune: TuneConfig,
}

/// What was recorded of a stage: its checkpoint
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StageRecord {
    /// Storage
    pub storage: StorageRecord,
    /// The footprints that were tried with a hog
    pub protection: TuneRecord,
    /// Latencies of the device throughout
    pub latency: IoLatencySeries,
}

/// Memory that protection may reclaim from hashd in its smallest footprint: it tries down to this part of the share.
const MIN_PART: (u64, u64) = (4, 5);

/// Measures what `record` lacks of a stage, and calls `checkpoint` whenever something was added. The preparation's own
/// state of the controller and control groups are replaced.
///
/// # Errors
/// Those of the benches. Also if the kernel has other parameters at the end than those that were set.
pub async fn measure(
    worker: &Worker,
    preparation: &Preparation,
    config: &StageConfig,
    record: &mut StageRecord,
    size: impl AsyncFnMut(&PreparedWorker) -> Result<Sizing, ContentionError>,
    mut checkpoint: impl FnMut(&StageRecord),
) -> Result<StorageResult, ContentionError> {
    let io_control = config.qos.map_or(IoControl::Off, |qos| IoControl::On(config.model, qos));
    let mut preparation = Preparation { io_control, slices: storage::slices(), ..preparation.clone() };
    let prepared = PreparedWorker::new(worker, &preparation).await?;
    let watch = LatencyWatch::start(&prepared).await?;
    let mut storage_record = record.storage.clone();
    let measured = storage::measure(&prepared, &config.storage, &mut storage_record, size, |_| ()).await;
    record.latency.extend(IoLatencySeries::new(watch.finish().await?));
    record.storage = storage_record;
    checkpoint(record);
    let result = measured?;
    require_qos(&prepared, config.qos).await?;
    prepared.finish().await?;

    let share = record.storage.memory.share;
    preparation.slices = protection::slices(Some(share));
    let prepared = PreparedWorker::new(worker, &preparation).await?;
    let watch = LatencyWatch::start(&prepared).await?;
    let size_min = wb_model::Bytes(share.0 * MIN_PART.0 / MIN_PART.1);
    let tune = TuneConfig { size_max: result.size, size_min, ..config.tune.clone() };
    let mut tried = record.protection.clone();
    let measured = protection::tune(&prepared, &config.protection, &tune, &mut tried, |tried| {
        record.protection = tried.clone();
        checkpoint(record);
    });
    let measured = measured.await;
    record.latency.extend(IoLatencySeries::new(watch.finish().await?));
    checkpoint(record);
    measured?;
    require_qos(&prepared, config.qos).await?;
    prepared.finish().await?;
    Ok(result)
}

/// Fails if the controller has other targets than those that were set: something else has changed them.
async fn require_qos(prepared: &PreparedWorker, expected: Option<IocostQos>) -> Result<(), ContentionError> {
    let state = system::iocost_state(prepared.worker(), prepared.device()).await?;
    let found = state.filter(|state| state.enabled).map(|state| state.qos.to_string());
    if prepared.enforcement().io && found != expected.map(|qos| qos.to_string()) {
        return Err(ContentionError::ForeignChange { what: format!("io.cost.qos of {}", prepared.device().name) });
    }
    Ok(())
}
