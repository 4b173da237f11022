//! Runs `storage`. Its checkpoint has the finished loops.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};
use wb_contention::measurement::{Measurement, Period, StorageMeasurement};
use wb_contention::runner::{StageContext, StageError, StageFailure};
use wb_contention::spec::StorageWork;
use wb_contention::stage::Stage;
use wb_contention_worker::storage::{self, Sizing, StorageConfig, StorageRecord};
use wb_contention_worker::{ContentionError, PreparedWorker, hashd_params};
use wb_hashd::sizing::{SizingConfig, SizingRequest};
use wb_results::contention::HashdParameters;
use wb_sys::clock::unix_time;

use super::checkpoint::{self, CheckpointWriter};
use super::observer::DeviceObserver;
use super::sizing::{Load, found_parameters, sizing_config};
use super::{ContentionSession, memory};

/// The result of one loop, a sizing of hashd, besides its size.
#[derive(Clone, Serialize, Deserialize)]
struct LoopDetails {
    /// When hashd last ran, with its final footprint.
    last_round: Period,
    hashd: HashdParameters,
}

#[derive(Serialize, Deserialize)]
struct Progress {
    /// When the measurement began, in seconds since the epoch.
    started_at: u64,
    record: StorageRecord,
    loops: Vec<LoopDetails>,
}

pub(super) async fn measure(
    session: &ContentionSession,
    stage: &Stage,
    work: &StorageWork,
    context: &mut StageContext<'_>,
) -> Result<Measurement, StageError> {
    let resumed: Option<Progress> = checkpoint::read(context)?;
    let prepared = session.prepare(stage, None, context).await?;
    let measured = run(session, &prepared, stage, work, resumed, context).await;
    let measured = session.finish(prepared, stage, measured).await?;
    Ok(Measurement::Storage(measured))
}

async fn run(
    session: &ContentionSession,
    prepared: &PreparedWorker,
    stage: &Stage,
    work: &StorageWork,
    resumed: Option<Progress>,
    context: &mut StageContext<'_>,
) -> Result<StorageMeasurement, StageError> {
    session.settle_vrate(prepared, stage).await?;
    let mut progress = match resumed {
        Some(progress) => progress,
        None => {
            let memory = session.memory_share(prepared, stage.conditions.mem_profile).await?;
            Progress { started_at: unix_time() as u64, record: StorageRecord::new(memory), loops: Vec::new() }
        }
    };
    let mut observer = DeviceObserver::start(prepared, context.reports()).await?;
    let mut checkpoints = CheckpointWriter::new(context);
    let measured = observer.observe(run_loops(session, prepared, stage, work, &mut progress, &mut checkpoints)).await;
    observer.finish().await?;
    measured?.map_err(|error| session.failure(error))?;
    checkpoints.finish()?;
    session.mem_avail.set(Some(progress.record.memory.avail));
    let last = progress.loops.last();
    let no_loop =
        || StageFailure::Workload { reason: "no footprint of hashd was found that the device supports".to_owned() };
    Ok(StorageMeasurement {
        period: Period { first: progress.started_at, last: unix_time() as u64 },
        final_periods: progress.loops.iter().map(|one| one.last_round).collect(),
        memory: memory::recorded(progress.record.memory),
        hashd: last.ok_or_else(no_loop)?.hashd,
        usages: progress.record.sizings.iter().map(|sizing| sizing.usage).collect(),
        sizes: progress.record.sizings.iter().map(|sizing| sizing.size).collect(),
        largest: Some(SizingConfig::footprint_for(progress.record.memory.share)),
    })
}

async fn run_loops(
    session: &ContentionSession,
    prepared: &PreparedWorker,
    stage: &Stage,
    work: &StorageWork,
    progress: &mut Progress,
    checkpoints: &mut CheckpointWriter<'_, '_>,
) -> Result<(), ContentionError> {
    let config = StorageConfig {
        loops: work.loops,
        mem_avail_err_max: work.mem_avail_err_max,
        mem_avail_inner_retries: work.mem_avail_inner_retries,
        mem_avail_outer_retries: work.mem_avail_outer_retries,
    };
    let load = Load { fake_cpu_load: true, rps_max: Some(work.rps_max), requests: work.requests };
    let sizing = sizing_config(load, &progress.record.memory, &session.options, stage.conditions.time_scale);
    let request = SizingRequest { config: sizing, rounds: Vec::new() };
    // The last loop, until it is known to be valid.
    let pending: RefCell<Option<LoopDetails>> = RefCell::new(None);
    let size = async |prepared: &PreparedWorker| {
        let outcome = hashd_params::size(prepared, &request, |_| ()).await?;
        let hashd = found_parameters(&outcome.result);
        let (begin, end) = outcome.last_round;
        let last_round = Period { first: begin as u64, last: end as u64 };
        pending.replace(Some(LoopDetails { last_round, hashd }));
        Ok(Sizing { size: hashd.mem_size, usage: outcome.usage })
    };
    let Progress { started_at, record, loops } = progress;
    let started_at = *started_at;
    storage::measure(prepared, &config, record, size, |record| {
        // Without sizings, the measurement has begun again with another estimate of the available memory.
        if record.sizings.is_empty() {
            loops.clear();
        } else {
            loops.extend(pending.take());
        }
        checkpoints.write(&Progress { started_at, record: record.clone(), loops: loops.clone() });
    })
    .await
    .map(drop)
}
