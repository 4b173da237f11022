//! One attempt at a sample: made by all role assignments of a cell concurrently, and recorded on disk before anything
//! else happens.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::Instant;
use wb_model::{AttemptOutcome, AttemptPurpose, Bytes, Roles, WorkerName};
use wb_plan::Sampling;
use wb_record::journal::AttemptEnd;
use wb_record::{Artefact, History, Journal, JournalEvent, RecordError, RunFolder};
use wb_study::EvaluatedAttempt;
use wb_test::Failure;
use wb_test::attempt::AttemptRecord;
use wb_test::start_barrier::BarrierSlot;

use crate::RunError;
use crate::active_cell::{ActiveCell, PreparedContext};
use crate::cleanup::CleanupReport;
use crate::other_runs::OtherRuns;
use crate::role_sample::{AttemptContext, RoleSample, SampleSpec};
use crate::worker_pool::WorkerPool;

/// State shared by all attempts of a run: workers, journal, history, cancellation.
pub struct RunContext {
    pub pool: WorkerPool,
    pub lost: BTreeSet<WorkerName>,
    pub other_runs: OtherRuns,
    pub sampling: Sampling,
    /// Becomes true when the user cancels the run.
    pub cancel: watch::Receiver<bool>,
    pub run: RunFolder,
    pub journal: Journal,
    pub history: History,
}

/// Combined result of one sample over all workers.
struct AttemptResult {
    result: Result<(), Failure>,
    record: AttemptRecord,
    works: BTreeMap<WorkerName, u64>,
}

impl RunContext {
    /// Makes an attempt and records it; returns warnings about other runs seen for the first time.
    pub async fn attempt(
        &mut self,
        cell: &mut ActiveCell,
        purpose: AttemptPurpose,
        sample: u32,
    ) -> Result<Vec<String>, RunError> {
        let id = cell.planned.id.clone();
        let number = self.history.next_attempt(&id, purpose, sample);
        let folder = self.run.path().join(RunFolder::attempt_folder(&id, purpose, sample, number));
        self.run.require_in_place()?;
        let create = RecordError::io("create", &folder);
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
        // All role assignments measure at the same time, each with a context, groups and artefacts of its own, and are
        // one attempt; the study combines their values into one sample.
        let AttemptResult { result, record, works } = self.take_sample(cell, purpose, sample).await;
        let seconds = start.elapsed().as_secs_f64();
        let outcome = match result {
            Ok(()) => AttemptOutcome::Completed,
            Err(failure) => self.explain_failure(failure).await.outcome(),
        };

        self.run.require_in_place()?;
        let artefacts = Artefact::write_all(&folder, &record.artefacts)?;
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
            workers: concurrent_workers(&cell.planned.roles).into_iter().cloned().collect(),
            work_by_worker: works,
            disturbances: record.disturbances,
            findings: record.findings,
            artefacts,
        }))?;
        let ended = self.history.attempts(&id).last().cloned();
        cell.add_attempt(ended);
        Ok(self.other_runs.add(record.other_runs))
    }

    async fn explain_failure(&self, failure: Failure) -> Failure {
        let Failure::Lost { worker, reason } = failure else { return failure };
        let reason = self.explain_loss(&worker, reason).await;
        Failure::Lost { worker, reason }
    }

    /// Explains the loss of a worker; for a guest with the last lines of its console.
    pub(crate) async fn explain_loss(&self, worker: &WorkerName, reason: String) -> String {
        let console = self.pool.get(worker).and_then(|member| member.console.as_ref());
        let lines = match console {
            Some(console) => console.last_lines().await,
            None => String::new(),
        };
        if lines.is_empty() { reason } else { format!("{reason}; its console ends: {lines}") }
    }

    pub fn write(&mut self, event: JournalEvent) -> Result<(), RunError> {
        let line = self.journal.write(event)?;
        self.history.add(&self.run, &line, false);
        Ok(())
    }

    async fn take_sample(&self, cell: &mut ActiveCell, purpose: AttemptPurpose, sample: u32) -> AttemptResult {
        let mut prepared = std::mem::take(&mut cell.prepared);
        prepared.resize_with(cell.planned.roles.len(), || None);
        let concurrent = cell.planned.roles.len() > 1;
        let slots =
            BarrierSlot::new_barrier(cell.planned.roles.len()).into_iter().map(|slot| concurrent.then_some(slot));
        let (context, measured) = (self.attempt_context(cell.planned.roles.len()), &*cell);
        let parts = measured.planned.roles.iter().zip(slots).zip(prepared).map(|((assignment, slot), prepared)| {
            let which = SampleSpec { purpose, sample, work: measured.work(&assignment.worker) };
            context.take_role_sample(measured, assignment, slot, which, prepared)
        });
        let parts = join_all(parts).await;
        let workers: Vec<WorkerName> = cell.planned.roles.iter().map(|assignment| assignment.worker.clone()).collect();
        let (still_prepared, taken) = merge_role_samples(&workers, parts);
        cell.prepared = still_prepared;
        taken
    }

    /// Cleans up what a cell's test prepared for all its samples; returns the problems, a sentence each.
    pub(crate) async fn clean_up(&self, cell: &mut ActiveCell) -> Vec<String> {
        let prepared = std::mem::take(&mut cell.prepared);
        let measured = &*cell;
        let context = self.attempt_context(prepared.len());
        let reports = join_all(prepared.into_iter().map(|prepared| context.clean_up(measured, prepared))).await;
        reports
            .into_iter()
            .zip(&cell.planned.roles)
            .flat_map(|(report, assignment)| cell.problems(assignment, report))
            .collect()
    }

    fn attempt_context(&self, parts: usize) -> AttemptContext<'_> {
        let remaining = self.sampling.max_stdout.0.saturating_sub(self.history.stdout_bytes());
        let stdout_room = Bytes(remaining / parts.max(1) as u64);
        AttemptContext {
            pool: &self.pool,
            sampling: &self.sampling,
            cancel: &self.cancel,
            remaining_stdout: stdout_room,
        }
    }
}

/// Returns the workers that measure concurrently; empty if there is only one.
fn concurrent_workers(roles: &[Roles]) -> Vec<&WorkerName> {
    if roles.len() > 1 { roles.iter().map(|assignment| &assignment.worker).collect() } else { Vec::new() }
}

/// Merges the role samples of an attempt, and collects what stays prepared. With several workers, each one's artefacts
/// are in a folder with its name.
fn merge_role_samples(workers: &[WorkerName], parts: Vec<RoleSample>) -> (Vec<PreparedContext>, AttemptResult) {
    let is_single = parts.len() == 1;
    let mut prepared = Vec::new();
    let mut merged = AttemptResult { result: Ok(()), record: AttemptRecord::default(), works: BTreeMap::new() };
    for (worker, part) in workers.iter().zip(parts) {
        let label = |text: String| if is_single { text } else { format!("{worker}: {text}") };
        let file = |(name, bytes)| if is_single { (name, bytes) } else { (format!("{worker}/{name}"), bytes) };
        merged.record.artefacts.extend(part.record.artefacts.into_iter().map(file));
        merged.record.findings.extend(part.record.findings.into_iter().map(label));
        merged.record.workload_seconds = merged.record.workload_seconds.max(part.record.workload_seconds);
        merged.record.disturbances.extend(part.record.disturbances.into_iter().map(label));
        merged.record.other_runs.extend(part.record.other_runs);
        match part.record.work {
            work if is_single => merged.record.work = work,
            Some(work) => drop(merged.works.insert(worker.clone(), work)),
            None => {}
        }
        let result = part.result.map_err(|failure| if is_single { failure } else { failure.on_worker(worker) });
        // A lost worker explains the failures of the others.
        if merged.result.is_ok() || matches!(result, Err(Failure::Lost { .. })) {
            merged.result = result.and(merged.result);
        }
        prepared.push(part.prepared);
    }
    (prepared, merged)
}

impl ActiveCell {
    /// Converts a report to problems, with the name of the worker if there are several.
    pub(crate) fn problems(&self, assignment: &Roles, report: CleanupReport) -> Vec<String> {
        let is_single = self.planned.roles.len() == 1;
        let label = |problem| if is_single { problem } else { format!("{}: {problem}", assignment.worker) };
        report.into_problems().into_iter().map(label).collect()
    }

    fn add_attempt(&mut self, attempt: Option<wb_record::RecordedAttempt>) {
        if let Some(attempt) = attempt {
            let evaluated = EvaluatedAttempt::evaluate(self.test_cell.as_ref(), &self.definition.criteria, attempt);
            self.add(evaluated);
        }
    }
}
