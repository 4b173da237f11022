//! One attempt at a sample: made by all teams of a cell at the same time, and on the device before anything else happens.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::Instant;
use wb_agent::AgentSession;
use wb_model::{AttemptOutcome, Bytes, Purpose, Roles, WorkerName};
use wb_plan::Sampling;
use wb_record::journal::AttemptEnd;
use wb_record::{Artefact, History, Journal, JournalEvent, RecordError, RunFolder};
use wb_study::StudiedAttempt;
use wb_tests::Failure;
use wb_tests::attempt::AttemptRecord;
use wb_tests::start_barrier::BarrierSlot;

use crate::RunError;
use crate::active_cell::ActiveCell;
use crate::other_runs::OtherRuns;
use crate::role_sample::{AttemptContext, RoleSample, SampleSpec};
use crate::worker_pool::WorkerPool;

/// What attempts are made with.
pub struct RunContext {
    /// Where.
    pub pool: WorkerPool,
    /// Workers that went away.
    pub lost: BTreeSet<WorkerName>,
    /// Other runs on their machines.
    pub other_runs: OtherRuns,
    /// How samples are taken.
    pub sampling: Sampling,
    /// Becomes true when the user wants to end.
    pub cancel: watch::Receiver<bool>,
    /// Where everything is recorded.
    pub run: RunFolder,
    /// The journal of that.
    pub journal: Journal,
    /// What the journal adds up to.
    pub history: History,
}

/// How a sample was taken, by all teams together.
struct AttemptResult {
    result: Result<(), Failure>,
    record: AttemptRecord,
    works: BTreeMap<WorkerName, u64>,
    disturbances: Vec<String>,
    other_runs: BTreeSet<(WorkerName, AgentSession)>,
}

impl RunContext {
    /// Makes an attempt and records it; warnings about what was noticed for the first time.
    pub async fn attempt(
        &mut self,
        cell: &mut ActiveCell,
        purpose: Purpose,
        sample: u32,
    ) -> Result<Vec<String>, RunError> {
        let id = cell.cell.id.clone();
        let number = self.history.next_attempt(&id, purpose, sample);
        let folder = self.run.path().join(RunFolder::attempt_folder(&id, purpose, sample, number));
        let create = |source| RecordError::Io { operation: "create", path: folder.clone(), source };
        fs::create_dir_all(&folder).map_err(create)?;
        let key = cell.definition.key.clone();
        self.write(JournalEvent::AttemptStarted {
            cell: id.clone(),
            key: key.clone(),
            purpose,
            sample,
            attempt: number,
        })?;

        let start = Instant::now();
        let AttemptResult { result, record, works, disturbances, other_runs } =
            self.take_sample(cell, purpose, sample).await;
        let seconds = start.elapsed().as_secs_f64();
        let outcome = match result {
            Ok(()) => AttemptOutcome::Completed,
            Err(failure) => self.explain_failure(failure).await.outcome(),
        };

        let write = |(path, bytes): &(String, Vec<u8>)| Artefact::write(&folder, path, bytes);
        let artefacts = record.artefacts.iter().map(write).collect::<Result<_, _>>()?;
        self.write(JournalEvent::AttemptEnded(AttemptEnd {
            cell: id.clone(),
            key,
            purpose,
            sample,
            attempt: number,
            outcome,
            seconds,
            workload_seconds: record.workload_seconds,
            work: record.work,
            workers: concurrent_workers(&cell.cell.teams).into_iter().cloned().collect(),
            work_by_worker: works,
            disturbances,
            findings: record.findings,
            artefacts,
        }))?;
        let ended = self.history.attempts(&id).last().cloned();
        cell.add_attempt(ended);
        Ok(self.other_runs.add(other_runs))
    }

    /// A failure with the last lines of the console of a guest that was lost.
    async fn explain_failure(&self, failure: Failure) -> Failure {
        let Failure::Lost { worker, why } = failure else { return failure };
        let why = self.explain_loss(&worker, why).await;
        Failure::Lost { worker, why }
    }

    /// Why a worker was lost, with the last lines of its console where it is a guest.
    pub(crate) async fn explain_loss(&self, worker: &WorkerName, why: String) -> String {
        let console = self.pool.get(worker).and_then(|member| member.console.as_ref());
        let lines = match console {
            Some(console) => console.last_lines().await,
            None => String::new(),
        };
        if lines.is_empty() { why } else { format!("{why}; its console ends: {lines}") }
    }

    /// Writes an event and adds it to the history.
    pub fn write(&mut self, event: JournalEvent) -> Result<(), RunError> {
        let line = self.journal.write(event)?;
        self.history.add(&self.run, &line, false);
        Ok(())
    }

    /// Takes a sample with all teams.
    async fn take_sample(&self, cell: &mut ActiveCell, purpose: Purpose, sample: u32) -> AttemptResult {
        let mut prepared = std::mem::take(&mut cell.prepared);
        prepared.resize_with(cell.cell.teams.len(), || None);
        let together = cell.cell.teams.len() > 1;
        let seats = BarrierSlot::new_group(cell.cell.teams.len()).into_iter().map(|seat| together.then_some(seat));
        let (means, measured) = (self.attempt_context(cell.cell.teams.len()), &*cell);
        let parts = measured.cell.teams.iter().zip(seats).zip(prepared).map(|((team, seat), prepared)| {
            let which = SampleSpec { purpose, sample, work: measured.work(&team.worker) };
            means.take_role_sample(measured, team, seat, which, prepared)
        });
        let parts = join_all(parts).await;
        let workers: Vec<WorkerName> = cell.cell.teams.iter().map(|team| team.worker.clone()).collect();
        let (kept, taken) = merge_role_samples(&workers, parts);
        cell.prepared = kept;
        taken
    }

    /// Takes down what a cell's test prepared for all its samples, and records what went wrong with that: a sentence each.
    pub async fn clean_up(&mut self, cell: &mut ActiveCell) -> Result<Vec<String>, RunError> {
        let prepared = std::mem::take(&mut cell.prepared);
        let measured = &*cell;
        let means = self.attempt_context(prepared.len());
        let cleaned = join_all(prepared.into_iter().map(|prepared| means.clean_up(measured, prepared))).await;
        let alone = cell.cell.teams.len() == 1;
        let mut problems = Vec::new();
        for (team, cleaned) in cell.cell.teams.iter().zip(cleaned) {
            let of_team = cleaned.unwrap_or_else(|failure| vec![failure.to_string()]);
            let shown = |problem| if alone { problem } else { format!("{}: {problem}", team.worker) };
            problems.extend(of_team.into_iter().map(shown));
        }
        if !problems.is_empty() {
            let (cell, key) = (cell.cell.id.clone(), cell.definition.key.clone());
            self.write(JournalEvent::CleanupFailed { cell, key, problems: problems.clone() })?;
        }
        Ok(problems)
    }

    /// With what so many parts are taken at the same time.
    fn attempt_context(&self, parts: usize) -> AttemptContext<'_> {
        let room = self.sampling.max_stdout.0.saturating_sub(self.history.stdout_bytes());
        let stdout_room = Bytes(room / parts.max(1) as u64);
        AttemptContext { pool: &self.pool, sampling: &self.sampling, cancel: &self.cancel, stdout_room }
    }
}

/// The workers that measure at the same time; none where it is one.
fn concurrent_workers(teams: &[Roles]) -> Vec<&WorkerName> {
    if teams.len() > 1 { teams.iter().map(|team| &team.worker).collect() } else { Vec::new() }
}

/// What the parts come to together, and what they prepared. Of several each worker's files are in a folder of its name.
fn merge_role_samples(
    workers: &[WorkerName],
    parts: Vec<RoleSample>,
) -> (Vec<crate::role_sample::PreparedSite>, AttemptResult) {
    let alone = parts.len() == 1;
    let mut prepared = Vec::new();
    let mut taken = AttemptResult {
        result: Ok(()),
        record: AttemptRecord::default(),
        works: BTreeMap::new(),
        disturbances: Vec::new(),
        other_runs: BTreeSet::new(),
    };
    for (worker, part) in workers.iter().zip(parts) {
        let told = |text: String| if alone { text } else { format!("{worker}: {text}") };
        let file = |(name, bytes)| if alone { (name, bytes) } else { (format!("{worker}/{name}"), bytes) };
        taken.record.artefacts.extend(part.record.artefacts.into_iter().map(file));
        taken.record.findings.extend(part.record.findings.into_iter().map(told));
        taken.record.workload_seconds = taken.record.workload_seconds.max(part.record.workload_seconds);
        taken.disturbances.extend(part.interference.disturbances.into_iter().map(told));
        taken.other_runs.extend(part.interference.other_runs);
        match part.record.work {
            work if alone => taken.record.work = work,
            Some(work) => drop(taken.works.insert(worker.clone(), work)),
            None => {}
        }
        let result = part.result.map_err(|failure| if alone { failure } else { failure.on_worker(worker) });
        // A worker that went away explains what others say then.
        if taken.result.is_ok() || matches!(result, Err(Failure::Lost { .. })) {
            taken.result = result.and(taken.result);
        }
        prepared.push(part.prepared);
    }
    (prepared, taken)
}

impl ActiveCell {
    fn add_attempt(&mut self, ended: Option<wb_record::RecordedAttempt>) {
        if let Some(attempt) = ended {
            let studied = StudiedAttempt::of(self.test.as_ref(), &self.cell.params, attempt);
            self.add(studied);
        }
    }
}
