//! `hashd-params`: its checkpoint has the configuration, as it was resolved, and the finished rounds.

use wb_contention::measurement::Measurement;
use wb_contention::runner::{StageContext, StageError};
use wb_contention::stage::{SizingWork, Stage};
use wb_contention_worker::{PreparedWorker, hashd_params};
use wb_hashd::sizing::{SizingLine, SizingRequest};

use super::ContentionSession;
use super::checkpoint::{self, CheckpointWriter};
use super::sizing::{Load, found_parameters, sizing_config};

pub(super) async fn measure(
    session: &ContentionSession,
    stage: &Stage,
    work: &SizingWork,
    context: &mut StageContext<'_>,
) -> Result<Measurement, StageError> {
    let resumed: Option<SizingRequest> = checkpoint::read(context)?;
    let prepared = session.prepare(stage, None, context).await?;
    let measured = size(session, &prepared, stage, work, resumed, context).await;
    session.finish(prepared, stage, measured).await
}

async fn size(
    session: &ContentionSession,
    prepared: &PreparedWorker,
    stage: &Stage,
    work: &SizingWork,
    resumed: Option<SizingRequest>,
    context: &mut StageContext<'_>,
) -> Result<Measurement, StageError> {
    let memory = session.memory_share(prepared, stage.conditions.mem_profile).await?;
    let SizingWork { fake_cpu_load, rps_max, requests } = *work;
    let load = Load { fake_cpu_load, rps_max, requests };
    let config = || sizing_config(load, &memory, &session.options, stage.conditions.time_scale);
    let request = resumed.unwrap_or_else(|| SizingRequest { config: config(), rounds: Vec::new() });
    let mut progress = request.clone();
    let mut checkpoints = CheckpointWriter::new(context);
    let outcome = hashd_params::measure(prepared, &memory, &request, |line| {
        match line {
            SizingLine::Config(config) => progress.config = *config,
            SizingLine::Round(round) => progress.rounds.push(*round),
            SizingLine::Result(_) => return,
        }
        checkpoints.write(&progress);
    })
    .await
    .map_err(|error| session.failure(error))?;
    checkpoints.finish()?;
    Ok(Measurement::HashdParams(found_parameters(&outcome.result)))
}
