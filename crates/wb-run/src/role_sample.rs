//! The share of one role assignment in a sample, taken on its workers independently of others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;
use wb_agent::{Command, Recording, RestoredChange, TelemetryRecord};
use wb_knobs::tune::{KnobOutcome, KnobResult};
use wb_model::{Bytes, Nanos, ProcessEnvironment, Purpose, Roles, Scope, WorkerName, with_worker};
use wb_plan::Sampling;
use wb_sys::telemetry::Thresholds;
use wb_sys::undo::{ResetSetting, RevertOutcome};
use wb_tests::attempt::{AttemptRecord, worker_failure};
use wb_tests::start_barrier::BarrierSlot;
use wb_tests::test::AnyPrepared;
use wb_tests::{Attempt, Failure, SharedParams, WorkerContext};

use crate::active_cell::ActiveCell;
use crate::other_runs;
use crate::user_tools::RunningTools;
use crate::worker_pool::{PooledWorker, WorkerPool};

/// What a role assignment prepared for all samples of a cell, and its site.
pub(crate) type PreparedSite = Option<(WorkerContext, AnyPrepared)>;

/// Artefact with the results of a cell's knobs: by worker, a list of [`Tuned`].
const KNOBS: &str = "knobs.json";

/// What an attempt needs to run on the workers of one role assignment.
#[derive(Clone, Copy)]
pub(crate) struct AttemptContext<'a> {
    pub(crate) pool: &'a WorkerPool,
    pub(crate) sampling: &'a Sampling,
    pub(crate) cancel: &'a watch::Receiver<bool>,
    /// Remaining standard output that each role assignment may record.
    pub(crate) remaining_stdout: Bytes,
}

/// External interference observed during a sample.
#[derive(Default)]
pub(crate) struct Interference {
    pub(crate) disturbances: Vec<String>,
    /// Other active runs, by machine.
    pub(crate) other_runs: BTreeSet<(WorkerName, wb_agent::AgentSession)>,
}

/// One role assignment's share of a sample: result, artefacts and what stays prepared.
pub(crate) struct RoleSample {
    pub(crate) result: Result<(), Failure>,
    pub(crate) record: AttemptRecord,
    pub(crate) interference: Interference,
    pub(crate) prepared: PreparedSite,
}

impl RoleSample {
    fn failed(failure: Failure, prepared: PreparedSite) -> Self {
        Self { result: Err(failure), record: AttemptRecord::default(), interference: Interference::default(), prepared }
    }
}

/// Identifies a sample of a cell.
#[derive(Clone, Copy)]
pub(crate) struct SampleSpec {
    pub(crate) purpose: Purpose,
    pub(crate) sample: u32,
    /// Calibrated work of the role assignment.
    pub(crate) work: Option<u64>,
}

impl AttemptContext<'_> {
    /// Takes the share of a role assignment. Whatever happens, nothing that it started is left on its workers.
    pub(crate) async fn take_role_sample(
        self,
        cell: &ActiveCell,
        team: &Roles,
        slot: Option<BarrierSlot>,
        spec: SampleSpec,
        prepared: PreparedSite,
    ) -> RoleSample {
        let site = match self.site(cell, team, slot).await {
            Ok(site) => site,
            Err(failure) => return RoleSample::failed(failure, prepared),
        };
        let mut attempt = Attempt::new(site, spec.purpose, spec.sample, self.sampling.min_time, spec.work);
        attempt.stdout_limit = self.remaining_stdout;
        let (result, prepared) = match prepare_site(cell, &mut attempt).await {
            Ok(()) => self.prepare_and_sample(cell, team, &mut attempt, prepared).await,
            Err(failure) => (Err(failure), prepared),
        };
        let (site, mut record) = attempt.into_parts();
        let teardown = SiteTeardown::of(site).await;
        record.findings.extend(teardown.findings);
        let (result, mut interference) = match result {
            Ok(interference) => (Ok(()), interference),
            Err(failure) => (Err(failure), Interference::default()),
        };
        interference.disturbances.extend(teardown.disturbances);
        let result = match (result, teardown.failure) {
            (Ok(()), Some(failure)) => Err(failure),
            (Err(failure), Some(other)) => {
                record.findings.push(format!("teardown failed too: {other}"));
                Err(failure)
            }
            (result, None) => result,
        };
        RoleSample { result, record, interference, prepared }
    }

    /// Builds the programs of a role assignment outside of a sample; returns their hashes by name.
    pub(crate) async fn build(self, cell: &ActiveCell, team: &Roles) -> Result<BTreeMap<String, String>, Failure> {
        let site = self.site(cell, team, None).await?;
        let hashes = cell.test_cell.build(&site).await;
        let teardown = SiteTeardown::of(site).await;
        teardown.failure.map_or(hashes, Err)
    }

    /// Cleans up what was prepared for all samples of a cell; returns the findings.
    pub(crate) async fn clean_up(self, cell: &ActiveCell, prepared: PreparedSite) -> Result<Vec<String>, Failure> {
        let Some((site, prepared)) = prepared else { return Ok(Vec::new()) };
        let result = cell.test_cell.cleanup(prepared, &site).await;
        let teardown = SiteTeardown::of(site).await;
        result?;
        teardown.failure.map_or(Ok(teardown.findings), Err)
    }

    /// Creates the site of a role assignment, including the workers of remote servers.
    async fn site(self, cell: &ActiveCell, team: &Roles, slot: Option<BarrierSlot>) -> Result<WorkerContext, Failure> {
        let mut peers = Vec::new();
        for peer in team.remote_servers() {
            peers.push(self.worker_site(cell, team, peer).await?);
        }
        Ok(WorkerContext { peers, barrier_slot: slot, ..self.worker_site(cell, team, &team.worker).await? })
    }

    async fn worker_site(self, cell: &ActiveCell, team: &Roles, name: &WorkerName) -> Result<WorkerContext, Failure> {
        let no_worker = || Failure::refused(format!("no such worker: `{name}`"));
        let PooledWorker { worker, facts, address, .. } = self.pool.get(name).ok_or_else(no_worker)?;
        let group = worker.new_group_with(process_environment(cell)?).await.map_err(worker_failure)?;
        let limit = self.sampling.limit(Nanos(cell.cell.estimate.0.max(self.sampling.min_time.0)));
        let placement = cell.test_cell.shared_params().placement.clone();
        let site = WorkerContext::new(group, Arc::clone(facts), placement, limit, self.cancel.clone());
        Ok(WorkerContext { team: team.clone(), address: address.clone(), ..site })
    }

    /// Prepares according to the test's scope, samples, and cleans up whatever does not outlive the sample.
    async fn prepare_and_sample(
        self,
        cell: &ActiveCell,
        team: &Roles,
        attempt: &mut Attempt,
        existing: PreparedSite,
    ) -> (Result<Interference, Failure>, PreparedSite) {
        if cell.cell.scope == Scope::Sample {
            let result = async {
                let mut prepared = cell.test_cell.prepare(&attempt.context).await?;
                let result = self.sample(cell, &mut prepared, attempt).await;
                match (result, cell.test_cell.cleanup(prepared, &attempt.context).await) {
                    (Ok(interference), cleanup) => cleanup.map(|()| interference).map_err(Failure::in_cleanup),
                    (Err(failure), cleanup) => {
                        note_failed_cleanup(attempt, cleanup);
                        Err(failure)
                    }
                }
            };
            return (result.await, None);
        }
        let fresh = async {
            let site = self.site(cell, team, None).await?;
            let prepared = cell.test_cell.prepare(&site).await?;
            Ok((site, prepared))
        };
        let (site, mut prepared) = match existing {
            Some(existing) => existing,
            None => match fresh.await {
                Ok(fresh) => fresh,
                Err(failure) => return (Err(failure), None),
            },
        };
        let result = self.sample(cell, &mut prepared, attempt).await;
        if result.is_ok() {
            return (result, Some((site, prepared)));
        }
        // The failure may have left the preparation broken: the next attempt prepares again.
        let cleanup = self.clean_up(cell, Some((site, prepared))).await;
        note_failed_cleanup(attempt, cleanup);
        (result, None)
    }

    /// Takes the sample itself, with user tools and telemetry on all its workers; returns the interference observed.
    async fn sample(
        self,
        cell: &ActiveCell,
        prepared: &mut AnyPrepared,
        attempt: &mut Attempt,
    ) -> Result<Interference, Failure> {
        let interval = self.sampling.telemetry_interval;
        let tools = RunningTools::start(attempt.context.worker(), &cell.cell.tools).await?;
        let mut recordings: Vec<(WorkerName, Recording)> = Vec::new();
        for site in std::iter::once(&attempt.context).chain(&attempt.context.peers) {
            recordings.push((site.worker().name().clone(), site.group.record(interval).await.map_err(worker_failure)?));
        }
        let result = cell.test_cell.sample(prepared, attempt).await;
        let mut finished = Vec::new();
        for (name, recording) in recordings {
            finished.push((name, recording.finish().await.map_err(worker_failure)));
        }
        if let Some(tools) = tools {
            tools.finish_into(attempt).await?;
        }
        let mut interference = Interference::default();
        for (index, (worker, recorded)) in finished.into_iter().enumerate() {
            let recorded = recorded?;
            let peer = (index > 0).then_some(&worker);
            interference.disturbances.extend(record_telemetry(attempt, peer, &recorded));
            interference.other_runs.extend(recorded.other_runs.into_iter().map(|run| (worker.clone(), run)));
        }
        result.map(|()| interference)
    }
}

/// Records telemetry and its findings, those of a peer under its name; returns the disturbances of the sample.
fn record_telemetry(attempt: &mut Attempt, peer: Option<&WorkerName>, recorded: &TelemetryRecord) -> Vec<String> {
    let TelemetryRecord { telemetry, other_runs } = recorded;
    let file = with_worker("telemetry", peer) + ".json";
    match serde_json::to_vec(telemetry) {
        Ok(json) => attempt.add_artefact(&file, json),
        Err(error) => attempt.add_finding(format!("cannot record telemetry: {error}")),
    }
    let label = |text: String| peer.map_or(text.clone(), |name| format!("{name}: {text}"));
    for run in other_runs {
        attempt.add_finding(label(other_runs::finding(run)));
    }
    let disturbance = telemetry.disturbance(&Thresholds::default());
    for finding in &disturbance.findings {
        attempt.add_finding(label(finding.to_string()));
    }
    disturbance.marks.iter().map(|mark| label(mark.to_string())).collect()
}

/// Returns the environment variables and program replacements of a cell's processes.
fn process_environment(cell: &ActiveCell) -> Result<ProcessEnvironment, Failure> {
    let env = cell.test_cell.shared_params().setup.variables().map_err(Failure::refused)?;
    Ok(ProcessEnvironment { env, programs: cell.cell.programs.clone() })
}

/// Sets the cell's knobs until the site's groups are torn down, and runs the command to run before each attempt. That
/// command is not measured, so it has no placement.
async fn prepare_site(cell: &ActiveCell, attempt: &mut Attempt) -> Result<(), Failure> {
    let SharedParams { setup, knobs, .. } = cell.test_cell.shared_params();
    let mut tuned: BTreeMap<WorkerName, Vec<KnobResult>> = BTreeMap::new();
    for site in std::iter::once(&attempt.context).chain(&attempt.context.peers) {
        if !knobs.is_empty() {
            let outcomes = site.group.tune(knobs.clone()).await.map_err(worker_failure)?;
            tuned.insert(site.worker().name().clone(), outcomes);
        }
        if let Some(line) = &setup.before_command {
            site.run(Command::new(["sh", "-c", line])).await?;
        }
    }
    if tuned.is_empty() {
        return Ok(());
    }
    let json = serde_json::to_vec_pretty(&tuned).map_err(|error| Failure::refused(error.to_string()))?;
    attempt.add_artefact(KNOBS, json);
    let skipped = |KnobResult { knob, target, before: was, outcome, .. }: &KnobResult| match outcome {
        KnobOutcome::Skipped { reason } => {
            let value = was.as_ref().map(|before| format!(" at `{before}`")).unwrap_or_default();
            Some(format!("the knob `{knob}` of {target} was left unchanged{value}: {reason}"))
        }
        _ => None,
    };
    tuned.values().flatten().filter_map(skipped).for_each(|finding| attempt.add_finding(finding));
    let reset = |KnobResult { knob, target, resets, .. }: &KnobResult| {
        // Settings without a new value belonged to the previous scheduler and were removed with it, as expected.
        let listed: Vec<String> =
            resets.iter().filter(|reset| reset.after.is_some()).map(ResetSetting::to_string).collect();
        (!listed.is_empty()).then(|| format!("setting the knob `{knob}` of {target} reset {}", listed.join(", ")))
    };
    tuned.values().flatten().filter_map(reset).for_each(|finding| attempt.add_finding(finding));
    Ok(())
}

/// Adds a finding for a failed cleanup after a failed sample; the failure of the attempt stays that of the sample.
fn note_failed_cleanup<T>(attempt: &mut Attempt, result: Result<T, Failure>) {
    if let Err(failure) = result {
        attempt.add_finding(format!("cleanup failed too: {failure}"));
    }
}

/// Result of tearing down the groups of a site.
#[derive(Default)]
struct SiteTeardown {
    findings: Vec<String>,
    /// Settings that another process changed meanwhile.
    disturbances: Vec<String>,
    failure: Option<Failure>,
}

impl SiteTeardown {
    /// Tears down the groups of a site: kills their processes and reverts their changes.
    async fn of(site: WorkerContext) -> Self {
        let mut teardown = Self::default();
        for group in std::iter::once(site.group).chain(site.peers.into_iter().map(|other| other.group)) {
            match group.teardown().await {
                Ok(report) => teardown.add(report),
                Err(error) => teardown.failure = Some(worker_failure(error)),
            }
        }
        teardown
    }

    fn add(&mut self, report: wb_agent::TeardownReport) {
        if !report.unkillable.is_empty() {
            self.findings.push(format!("processes survived SIGKILL: {:?}", report.unkillable));
        }
        if let Some(fault) = report.fault {
            self.failure = Some(Failure::refused(fault));
        }
        for RestoredChange { description: what, outcome: how } in report.reverted {
            match how {
                RevertOutcome::Restored => {}
                RevertOutcome::Conflict { .. } => self.disturbances.push(format!("{what}: {how}")),
                RevertOutcome::Superseded { .. } | RevertOutcome::Gone => self.findings.push(format!("{what}: {how}")),
            }
        }
    }
}
