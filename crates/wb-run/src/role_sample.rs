//! The share of one role assignment in a sample, taken on its workers independently of others.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use wb_agent::{Recording, TelemetryRecord};
use wb_model::{AttemptPurpose, Bytes, Nanos, ProcessEnvironment, Roles, Scope, WorkerName, with_worker};
use wb_plan::Sampling;
use wb_sys::telemetry::Thresholds;
use wb_test::attempt::AttemptRecord;
use wb_test::start_barrier::BarrierSlot;
use wb_test::test::AnyPrepared;
use wb_test::{Attempt, Failure, WorkerContext};

use crate::active_cell::{ActiveCell, PreparedContext};
use crate::cleanup::{CleanupReport, add_failure};
use crate::knobs::prepare_workers;
use crate::other_runs;
use crate::user_tools::RunningTools;
use crate::worker_pool::{PooledWorker, WorkerPool};

/// What an attempt needs to run on the workers of one role assignment.
#[derive(Clone, Copy)]
pub(crate) struct AttemptContext<'a> {
    pub(crate) pool: &'a WorkerPool,
    pub(crate) sampling: &'a Sampling,
    pub(crate) cancel: &'a watch::Receiver<bool>,
    /// Remaining standard output that each role assignment may record.
    pub(crate) remaining_stdout: Bytes,
}

/// One role assignment's share of a sample: result, artefacts and what stays prepared.
pub(crate) struct RoleSample {
    pub(crate) result: Result<(), Failure>,
    pub(crate) record: AttemptRecord,
    pub(crate) prepared: PreparedContext,
}

#[derive(Clone, Copy)]
pub(crate) struct SampleSpec {
    pub(crate) purpose: AttemptPurpose,
    pub(crate) sample: u32,
    /// Calibrated work of the role assignment.
    pub(crate) work: Option<u64>,
}

impl AttemptContext<'_> {
    /// Takes the share of a role assignment. Whatever happens, nothing that it started is left on its workers.
    pub(crate) async fn take_role_sample(
        self,
        cell: &ActiveCell,
        assignment: &Roles,
        slot: Option<BarrierSlot>,
        spec: SampleSpec,
        prepared: PreparedContext,
    ) -> RoleSample {
        let context = match self.measuring_context(cell, assignment, slot).await {
            Ok(context) => context,
            Err(failure) => return RoleSample { result: Err(failure), record: AttemptRecord::default(), prepared },
        };
        let mut attempt = Attempt::new(context, spec.purpose, spec.sample, self.sampling.min_time, spec.work);
        attempt.stdout_limit = self.remaining_stdout;
        let (result, prepared) = match prepare_workers(cell, &mut attempt).await {
            Ok(()) => self.prepare_and_sample(cell, assignment, &mut attempt, prepared).await,
            Err(failure) => (Err(failure), prepared),
        };
        let (context, mut record) = attempt.into_parts();
        let result = CleanupReport::of_context(context).await.record("teardown", &mut record, result);
        RoleSample { result, record, prepared }
    }

    /// Builds the programs of a role assignment outside of a sample; returns their hashes by name.
    pub(crate) async fn build(
        self,
        cell: &ActiveCell,
        assignment: &Roles,
    ) -> (Result<BTreeMap<String, String>, Failure>, CleanupReport) {
        let context = match self.measuring_context(cell, assignment, None).await {
            Ok(context) => context,
            Err(failure) => return (Err(failure), CleanupReport::clean()),
        };
        let hashes = cell.test_cell.build(&context).await;
        (hashes, CleanupReport::of_context(context).await)
    }

    pub(crate) async fn clean_up(self, cell: &ActiveCell, prepared: PreparedContext) -> CleanupReport {
        let Some((context, prepared)) = prepared else { return CleanupReport::clean() };
        let result = cell.test_cell.cleanup(prepared, &context).await;
        CleanupReport::of_context(context).await.after(result.err())
    }

    /// Creates the context of a role assignment, including the workers of remote servers. If one fails, the groups of the
    /// others are dropped: nothing ran in them.
    async fn measuring_context(
        self,
        cell: &ActiveCell,
        assignment: &Roles,
        slot: Option<BarrierSlot>,
    ) -> Result<WorkerContext, Failure> {
        let mut peers = Vec::new();
        for peer in assignment.remote_servers() {
            peers.push(self.worker_context(cell, assignment, peer).await?);
        }
        Ok(WorkerContext {
            peers,
            barrier_slot: slot,
            ..self.worker_context(cell, assignment, &assignment.worker).await?
        })
    }

    async fn worker_context(
        self,
        cell: &ActiveCell,
        assignment: &Roles,
        name: &WorkerName,
    ) -> Result<WorkerContext, Failure> {
        let no_worker = || Failure::refused(format!("no such worker: `{name}`"));
        let PooledWorker { worker, facts, address, .. } = self.pool.get(name).ok_or_else(no_worker)?;
        let group = worker.new_group_with(process_environment(cell)?).await?;
        let limit = self.sampling.limit(Nanos(cell.planned.estimate.0.max(self.sampling.min_time.0)));
        let placement = cell.test_cell.shared_params().placement.clone();
        let context = WorkerContext::new(group, Arc::clone(facts), placement, limit, self.cancel.clone());
        Ok(WorkerContext { roles: assignment.clone(), address: address.clone(), ..context })
    }

    /// Prepares according to the test's scope, samples, and cleans up whatever does not outlive the sample.
    async fn prepare_and_sample(
        self,
        cell: &ActiveCell,
        assignment: &Roles,
        attempt: &mut Attempt,
        existing: PreparedContext,
    ) -> (Result<(), Failure>, PreparedContext) {
        if cell.planned.scope == Scope::Sample {
            let result = async {
                let mut prepared = cell.test_cell.prepare(&attempt.context).await?;
                let result = self.sample(cell, &mut prepared, attempt).await;
                match (result, cell.test_cell.cleanup(prepared, &attempt.context).await) {
                    (Ok(()), cleanup) => cleanup.map_err(Failure::in_cleanup),
                    (result, Ok(())) => result,
                    (result, Err(failure)) => add_failure(&mut attempt.record, "cleanup", result, failure),
                }
            };
            return (result.await, None);
        }
        let (context, mut prepared) = match existing {
            Some(existing) => existing,
            None => match self.prepare_cell(cell, assignment, attempt).await {
                Ok(fresh) => fresh,
                Err(failure) => return (Err(failure), None),
            },
        };
        let result = self.sample(cell, &mut prepared, attempt).await;
        if result.is_ok() {
            return (result, Some((context, prepared)));
        }
        // The failure may have left the preparation broken: the next attempt prepares again.
        let cleanup = self.clean_up(cell, Some((context, prepared))).await;
        (cleanup.record("cleanup", &mut attempt.record, result), None)
    }

    /// Prepares for all samples of a cell. If that fails, what the context's teardown finds belongs to this attempt.
    async fn prepare_cell(
        self,
        cell: &ActiveCell,
        assignment: &Roles,
        attempt: &mut Attempt,
    ) -> Result<(WorkerContext, AnyPrepared), Failure> {
        let context = self.measuring_context(cell, assignment, None).await?;
        match cell.test_cell.prepare(&context).await {
            Ok(prepared) => Ok((context, prepared)),
            Err(failure) => {
                CleanupReport::of_context(context).await.record("teardown", &mut attempt.record, Err(failure))
            }
        }
    }

    /// Takes the sample itself, with user tools and telemetry on all its workers.
    async fn sample(self, cell: &ActiveCell, prepared: &mut AnyPrepared, attempt: &mut Attempt) -> Result<(), Failure> {
        let tools = RunningTools::start(attempt, &cell.planned.tools).await?;
        let result = self.sample_with_telemetry(cell, prepared, attempt).await;
        match tools {
            Some(tools) => tools.finish(attempt, result).await,
            None => result,
        }
    }

    async fn sample_with_telemetry(
        self,
        cell: &ActiveCell,
        prepared: &mut AnyPrepared,
        attempt: &mut Attempt,
    ) -> Result<(), Failure> {
        let interval = self.sampling.telemetry_interval;
        let mut recordings: Vec<(WorkerName, Recording)> = Vec::new();
        for context in std::iter::once(&attempt.context).chain(&attempt.context.peers) {
            recordings.push((context.worker().name().clone(), context.group.record(interval).await?));
        }
        let mut result = cell.test_cell.sample(prepared, attempt).await;
        let mut finished = Vec::new();
        for (name, recording) in recordings {
            finished.push((name, recording.finish().await));
        }
        for (index, (worker, recorded)) in finished.into_iter().enumerate() {
            match recorded {
                Ok(recorded) => record_telemetry(&mut attempt.record, &worker, index > 0, recorded),
                Err(error) => result = add_failure(&mut attempt.record, "telemetry", result, error.into()),
            }
        }
        result
    }
}

/// Records telemetry, its findings and disturbances; those of a peer under its name.
fn record_telemetry(record: &mut AttemptRecord, worker: &WorkerName, is_peer: bool, recorded: TelemetryRecord) {
    let TelemetryRecord { telemetry, other_runs } = recorded;
    let file = with_worker("telemetry", is_peer.then_some(worker)) + ".json";
    let label = |text: String| if is_peer { format!("{worker}: {text}") } else { text };
    match serde_json::to_vec(&telemetry) {
        Ok(json) => record.artefacts.push((file, json)),
        Err(error) => record.findings.push(format!("cannot record telemetry: {error}")),
    }
    let disturbance = telemetry.disturbance(&Thresholds::default());
    record.findings.extend(other_runs.iter().map(|run| label(other_runs::finding(run))));
    record.findings.extend(disturbance.findings.iter().map(|finding| label(finding.to_string())));
    record.disturbances.extend(disturbance.marks.iter().map(|mark| label(mark.to_string())));
    record.other_runs.extend(other_runs.into_iter().map(|run| (worker.clone(), run)));
}

fn process_environment(cell: &ActiveCell) -> Result<ProcessEnvironment, Failure> {
    let env = cell.test_cell.shared_params().setup.variables().map_err(Failure::refused)?;
    Ok(ProcessEnvironment { env, programs: cell.planned.programs.clone() })
}
