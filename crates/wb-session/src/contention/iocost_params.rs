//! `iocost-params`: its checkpoint has the loads of fio that are done.

use wb_contention::measurement::Measurement;
use wb_contention::runner::{StageContext, StageError};
use wb_contention::stage::Stage;
use wb_contention_worker::iocost_params::{self, IocostParamsConfig, IocostParamsProgress};
use wb_model::Bytes;
use wb_results::contention::{IocostParameters, TimeScale};

use super::checkpoint::{self, CheckpointWriter};
use super::failure::worker_failure;
use super::{ContentionSession, scaled};

pub(super) async fn measure(
    session: &ContentionSession,
    stage: &Stage,
    context: &mut StageContext<'_>,
) -> Result<Measurement, StageError> {
    let mut progress: IocostParamsProgress = checkpoint::read(context)?.unwrap_or_default();
    let facts = session.worker().await?.facts().await.map_err(|error| worker_failure(&error))?;
    let config = config(facts.memory, stage.conditions.time_scale);
    let prepared = session.prepare(stage, None, context).await?;
    let mut checkpoints = CheckpointWriter::new(context);
    let measured =
        iocost_params::measure(&prepared, &config, &mut progress, |progress| checkpoints.write(progress)).await;
    let measured = session.finish(prepared, stage, measured.map_err(|error| session.failure(error))).await?;
    checkpoints.finish()?;
    Ok(Measurement::IocostParams(IocostParameters { model: measured.model, qos: measured.qos }))
}

fn config(memory: Bytes, scale: Option<TimeScale>) -> IocostParamsConfig {
    let full = IocostParamsConfig::for_memory(memory);
    let file_size = full.file_size.0 as f64 * scale.map_or(1.0, TimeScale::factor);
    IocostParamsConfig { runtime: scaled(full.runtime, scale), file_size: Bytes(file_size as u64), ..full }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use wb_model::Nanos;

    use super::*;

    #[test]
    fn trials_are_shorter_and_buffers_fit_into_memory() {
        let full = config(Bytes(64 << 30), None);
        assert_eq!(full, IocostParamsConfig::default());
        let trial = config(Bytes(1 << 30), Some("0.25".parse().unwrap()));
        assert_eq!((trial.runtime, trial.file_size), (Nanos(15_000_000_000), Bytes(4 << 30)));
        assert_eq!(trial.sequential_block, Bytes(32 << 20));
    }
}
