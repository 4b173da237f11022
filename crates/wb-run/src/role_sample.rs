//! One team's part in a sample: taken on its workers, whatever happens on others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;
use wb_agent::{Command, Recording, RestoredChange, TelemetryRecord};
use wb_knobs::tune::{KnobOutcome, KnobResult};
use wb_model::{Bytes, Nanos, ProcessEnvironment, Purpose, Roles, Scope, WorkerName};
use wb_plan::Sampling;
use wb_sys::telemetry::Thresholds;
use wb_sys::undo::{ResetSetting, RevertOutcome};
use wb_tests::attempt::{AttemptRecord, worker_failure};
use wb_tests::start_barrier::BarrierSlot;
use wb_tests::test::{AnyPrepared, requested_knobs};
use wb_tests::{Attempt, Failure, WorkerContext};

use crate::active_cell::ActiveCell;
use crate::other_runs;
use crate::user_tools::RunningTools;
use crate::worker_pool::{PooledWorker, WorkerPool};

/// What a team prepared for all samples of a cell, and where that lives.
pub(crate) type PreparedSite = Option<(WorkerContext, AnyPrepared)>;

/// The file of what became of a cell's knobs: by worker, a list of [`Tuned`].
const KNOBS: &str = "knobs.json";

/// With what parts are taken.
#[derive(Clone, Copy)]
pub(crate) struct AttemptContext<'a> {
    pub(crate) pool: &'a WorkerPool,
    pub(crate) sampling: &'a Sampling,
    pub(crate) cancel: &'a watch::Receiver<bool>,
    /// How much more standard output each part may record.
    pub(crate) stdout_room: Bytes,
}

/// What was seen around a sample.
#[derive(Default)]
pub(crate) struct Interference {
    pub(crate) disturbances: Vec<String>,
    /// Other runs that were under way, by machine.
    pub(crate) other_runs: BTreeSet<(WorkerName, wb_agent::AgentSession)>,
}

/// A part that was taken.
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

/// Which sample of a cell.
#[derive(Clone, Copy)]
pub(crate) struct SampleSpec {
    pub(crate) purpose: Purpose,
    pub(crate) sample: u32,
    /// The work that the team did before.
    pub(crate) work: Option<u64>,
}

impl AttemptContext<'_> {
    /// Takes a team's part. Whatever happens, nothing that it started is left on its workers.
    pub(crate) async fn take_role_sample(
        self,
        cell: &ActiveCell,
        team: &Roles,
        seat: Option<BarrierSlot>,
        which: SampleSpec,
        prepared: PreparedSite,
    ) -> RoleSample {
        let site = match self.site(cell, team, seat).await {
            Ok(site) => site,
            Err(failure) => return RoleSample::failed(failure, prepared),
        };
        let mut attempt = Attempt::new(site, which.purpose, which.sample, self.sampling.min_time, which.work);
        attempt.stdout_limit = self.stdout_room;
        let (result, prepared) = match prepare_site(cell, &mut attempt).await {
            Ok(()) => self.prepare_and_sample(cell, team, &mut attempt, prepared).await,
            Err(failure) => (Err(failure), prepared),
        };
        let (site, mut record) = attempt.into_parts();
        let teardown = SiteTeardown::of(site).await;
        record.findings.extend(teardown.findings);
        let (result, mut seen) = match result {
            Ok(seen) => (Ok(()), seen),
            Err(failure) => (Err(failure), Interference::default()),
        };
        seen.disturbances.extend(teardown.disturbances);
        let result = match (result, teardown.failure) {
            (Ok(()), Some(failure)) => Err(failure),
            (Err(failure), Some(other)) => {
                record.findings.push(format!("cannot tear down either: {other}"));
                Err(failure)
            }
            (result, None) => result,
        };
        RoleSample { result, record, interference: seen, prepared }
    }

    /// Builds the programs of a team apart from any sample: their hashes, by name.
    pub(crate) async fn build(self, cell: &ActiveCell, team: &Roles) -> Result<BTreeMap<String, String>, Failure> {
        let site = self.site(cell, team, None).await?;
        let built = cell.test.build(&cell.cell.params, &site).await;
        let teardown = SiteTeardown::of(site).await;
        teardown.failure.map_or(built, Err)
    }

    /// Takes down what was prepared for all samples of a cell; what was noticed by then.
    pub(crate) async fn clean_up(self, cell: &ActiveCell, prepared: PreparedSite) -> Result<Vec<String>, Failure> {
        let Some((site, prepared)) = prepared else { return Ok(Vec::new()) };
        let cleaned = cell.test.cleanup(&cell.cell.params, prepared, &site).await;
        let teardown = SiteTeardown::of(site).await;
        cleaned?;
        teardown.failure.map_or(Ok(teardown.findings), Err)
    }

    /// The site of a team: with its servers' workers, where these are others.
    async fn site(self, cell: &ActiveCell, team: &Roles, seat: Option<BarrierSlot>) -> Result<WorkerContext, Failure> {
        let mut others = Vec::new();
        for other in team.remote_servers() {
            others.push(self.worker_site(cell, team, other).await?);
        }
        Ok(WorkerContext { peers: others, barrier_slot: seat, ..self.worker_site(cell, team, &team.worker).await? })
    }

    async fn worker_site(self, cell: &ActiveCell, team: &Roles, name: &WorkerName) -> Result<WorkerContext, Failure> {
        let gone = || Failure::refused(format!("there is no worker `{name}`"));
        let PooledWorker { worker, facts, address, .. } = self.pool.get(name).ok_or_else(gone)?;
        let group = worker.new_group_with(process_environment(cell)?).await.map_err(worker_failure)?;
        let limit = self.sampling.limit(Nanos(cell.cell.estimate.0.max(self.sampling.min_time.0)));
        let site = WorkerContext::new(group, Arc::clone(facts), cell.placement.clone(), limit, self.cancel.clone());
        Ok(WorkerContext { team: team.clone(), address: address.clone(), ..site })
    }

    /// Prepares as the test's scope wants, samples, and takes down what does not outlive the sample.
    async fn prepare_and_sample(
        self,
        cell: &ActiveCell,
        team: &Roles,
        attempt: &mut Attempt,
        kept: PreparedSite,
    ) -> (Result<Interference, Failure>, PreparedSite) {
        let (test, params) = (&cell.test, &cell.cell.params);
        if cell.cell.scope == Scope::Sample {
            let sampled = async {
                let mut prepared = test.prepare(params, &attempt.context).await?;
                let sampled = self.sample(cell, &mut prepared, attempt).await;
                match (sampled, test.cleanup(params, prepared, &attempt.context).await) {
                    (Ok(seen), cleaned) => cleaned.map(|()| seen).map_err(Failure::in_cleanup),
                    (Err(failure), cleaned) => {
                        note_failed_cleanup(attempt, cleaned);
                        Err(failure)
                    }
                }
            };
            return (sampled.await, None);
        }
        let fresh = async {
            let site = self.site(cell, team, None).await?;
            let prepared = test.prepare(params, &site).await?;
            Ok((site, prepared))
        };
        let (site, mut prepared) = match kept {
            Some(kept) => kept,
            None => match fresh.await {
                Ok(fresh) => fresh,
                Err(failure) => return (Err(failure), None),
            },
        };
        let sampled = self.sample(cell, &mut prepared, attempt).await;
        if sampled.is_ok() {
            return (sampled, Some((site, prepared)));
        }
        // What failed may have left it broken: the next attempt prepares anew.
        let cleaned = self.clean_up(cell, Some((site, prepared))).await;
        note_failed_cleanup(attempt, cleaned);
        (sampled, None)
    }

    /// Takes the sample itself, with user tools and telemetry around it on all workers of the team; what was seen of it.
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
        let sampled = cell.test.sample(&cell.cell.params, prepared, attempt).await;
        let mut finished = Vec::new();
        for (name, recording) in recordings {
            finished.push((name, recording.finish().await.map_err(worker_failure)));
        }
        if let Some(tools) = tools {
            tools.finish_into(attempt).await?;
        }
        let mut seen = Interference::default();
        for (at, (worker, recorded)) in finished.into_iter().enumerate() {
            let recorded = recorded?;
            let elsewhere = (at > 0).then_some(&worker);
            seen.disturbances.extend(record_telemetry(attempt, elsewhere, &recorded));
            seen.other_runs.extend(recorded.other_runs.into_iter().map(|run| (worker.clone(), run)));
        }
        sampled.map(|()| seen)
    }
}

/// Records what was watched, of another worker under its name; what disturbed the sample.
fn record_telemetry(attempt: &mut Attempt, other: Option<&WorkerName>, recorded: &TelemetryRecord) -> Vec<String> {
    let TelemetryRecord { telemetry, other_runs } = recorded;
    let file = other.map_or("telemetry.json".to_owned(), |name| format!("telemetry@{name}.json"));
    match serde_json::to_vec(telemetry) {
        Ok(json) => attempt.add_artefact(&file, json),
        Err(error) => attempt.add_finding(format!("telemetry could not be recorded: {error}")),
    }
    let told = |text: String| other.map_or(text.clone(), |name| format!("{name}: {text}"));
    for run in other_runs {
        attempt.add_finding(told(other_runs::finding(run)));
    }
    let disturbance = telemetry.disturbance(&Thresholds::default());
    for finding in &disturbance.findings {
        attempt.add_finding(told(finding.to_string()));
    }
    disturbance.marks.iter().map(|mark| told(mark.to_string())).collect()
}

/// What the processes of a cell find.
fn process_environment(cell: &ActiveCell) -> Result<ProcessEnvironment, Failure> {
    let env = cell.surroundings.variables().map_err(Failure::refused)?;
    Ok(ProcessEnvironment { env, programs: cell.cell.programs.clone() })
}

/// Sets the cell's knobs until the site's groups are torn down, and runs what is to be run before each attempt: where and
/// how the system places it, since it is not measured.
async fn prepare_site(cell: &ActiveCell, attempt: &mut Attempt) -> Result<(), Failure> {
    let knobs = requested_knobs(&cell.cell.params);
    let mut tuned: BTreeMap<WorkerName, Vec<KnobResult>> = BTreeMap::new();
    for site in std::iter::once(&attempt.context).chain(&attempt.context.peers) {
        if !knobs.is_empty() {
            let outcomes = site.group.tune(knobs.clone()).await.map_err(worker_failure)?;
            tuned.insert(site.worker().name().clone(), outcomes);
        }
        if let Some(line) = &cell.surroundings.before_command {
            site.run(Command::new(["sh", "-c", line])).await?;
        }
    }
    if tuned.is_empty() {
        return Ok(());
    }
    let json = serde_json::to_vec_pretty(&tuned).map_err(|error| Failure::refused(error.to_string()))?;
    attempt.add_artefact(KNOBS, json);
    let left = |KnobResult { knob, target, before: was, outcome, .. }: &KnobResult| match outcome {
        KnobOutcome::Skipped { reason } => {
            let value = was.as_ref().map(|was| format!(" at `{was}`")).unwrap_or_default();
            Some(format!("the knob `{knob}` of {target} was left{value}: {reason}"))
        }
        _ => None,
    };
    tuned.values().flatten().filter_map(left).for_each(|finding| attempt.add_finding(finding));
    let reset = |KnobResult { knob, target, resets, .. }: &KnobResult| {
        // Settings of the scheduler that was there before are gone with it, as they should be.
        let listed: Vec<String> =
            resets.iter().filter(|reset| reset.after.is_some()).map(ResetSetting::to_string).collect();
        (!listed.is_empty()).then(|| format!("setting the knob `{knob}` of {target} has reset {}", listed.join(", ")))
    };
    tuned.values().flatten().filter_map(reset).for_each(|finding| attempt.add_finding(finding));
    Ok(())
}

/// The failure of a cleanup after a sample that has failed already: its reason stays that of the sample.
fn note_failed_cleanup<T>(attempt: &mut Attempt, cleaned: Result<T, Failure>) {
    if let Err(failure) = cleaned {
        attempt.add_finding(format!("cleanup failed too: {failure}"));
    }
}

/// What the end of a site's groups came to.
#[derive(Default)]
struct SiteTeardown {
    findings: Vec<String>,
    /// Settings that somebody else changed while the site was there.
    disturbances: Vec<String>,
    failure: Option<Failure>,
}

impl SiteTeardown {
    /// Ends all that runs on a site, and puts back what was changed for it.
    async fn of(site: WorkerContext) -> Self {
        let mut teardown = Self::default();
        for group in std::iter::once(site.group).chain(site.peers.into_iter().map(|other| other.group)) {
            match group.teardown().await {
                Ok(ended) => teardown.add(ended),
                Err(error) => teardown.failure = Some(worker_failure(error)),
            }
        }
        teardown
    }

    fn add(&mut self, ended: wb_agent::TeardownReport) {
        if !ended.unkillable.is_empty() {
            self.findings.push(format!("processes that not even SIGKILL ends: {:?}", ended.unkillable));
        }
        if let Some(fault) = ended.fault {
            self.failure = Some(Failure::refused(fault));
        }
        for RestoredChange { what, outcome: how } in ended.reverted {
            match how {
                RevertOutcome::Restored => {}
                RevertOutcome::Conflict { .. } => self.disturbances.push(format!("{what}: {how}")),
                RevertOutcome::Superseded { .. } | RevertOutcome::Gone => self.findings.push(format!("{what}: {how}")),
            }
        }
    }
}
