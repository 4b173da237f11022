//! The story of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tokio::sync::watch;
use wb_model::roles::all_workers;
use wb_model::{AttemptOutcome, CellId, Facts, ParamValue, Params, Purpose, Roles, WorkerName, secrets};
use wb_plan::{Cell, Plan, Sampling};
use wb_record::definition_files::{DefinitionFile, FileCopy};
use wb_record::journal::EntryEnd;
use wb_record::steps::StepOutcome;
use wb_record::{CellDefinition, History, JournalEvent, RunEntry, RunFolder};
use wb_study::StudiedAttempt;
use wb_tests::Registry;

use crate::active_cell::{ActiveCell, NextStep};
use crate::attempt::RunContext;
use crate::other_runs::OtherRuns;
use crate::provenance::{self, ToolInventory};
use crate::publish::{Publisher, is_due, test_of};
use crate::schedule::{Sampler, Turn, schedule};
use crate::worker_pool::WorkerPool;
use crate::{Progress, RunError, consistency, environment, resume};

/// What is to be carried out, and where it is recorded.
pub struct RunSpec<'a> {
    /// The run folder; made, or gone on in.
    pub folder: &'a Path,
    /// The cells.
    pub plan: Plan,
    /// The plan's name, or the tests as they were typed.
    pub plan_name: String,
    /// The plan's text, where it came from a file.
    pub plan_text: Option<String>,
    /// The command as it was typed, secrets masked.
    pub command: Vec<String>,
    /// Decides every random choice.
    pub seed: u64,
    /// What is said of hosts.
    pub hosts: BTreeMap<WorkerName, serde_json::Value>,
    /// What the user says of the run.
    pub metadata: BTreeMap<String, String>,
    /// This program's version.
    pub version: &'a str,
    /// Hash of this program's binary.
    pub program_sha256: String,
    /// The tests there are.
    pub registry: &'a Registry,
    /// Where it is measured.
    pub pool: WorkerPool,
    /// What its hosts were made to be, for the record.
    pub host_states: Vec<serde_json::Value>,
    /// Becomes true when the user wants to end.
    pub cancel: watch::Receiver<bool>,
    /// Whoever holds cells against each other while they are measured.
    pub stopping_rule: Option<&'a StoppingRule>,
    /// Whoever publishes each test when its last cell has ended.
    pub publisher: Option<&'a Publisher>,
}

/// Is given all cells and the place of one of them before that gets another sample, and says why it needs none any more.
/// The same samples have to give the same answer, so that a run that was interrupted ends where it would have.
pub type StoppingRule = dyn Fn(&[ActiveCell], usize) -> Option<String> + Send + Sync;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// With every cell as far as its rule and limits let it.
    Finished,
    /// Because the user asked it to; the same line goes on from here.
    Interrupted,
    /// With nothing to do: every cell is complete.
    Complete,
}

/// Carries out a job. `watch` is told what happens.
pub async fn run(job: RunSpec<'_>, mut watch: impl FnMut(Progress)) -> Result<RunEnd, RunError> {
    let RunSpec { folder, mut plan, registry, pool: crew, .. } = job;
    let run = RunFolder::create(folder)?;
    let (journal, lines) = run.journal()?;
    let history = History::of(&run, &lines);
    resume::check_keys(&plan, &run, &history)?;
    let tools = provenance::check_requirements(&mut plan, registry, &crew).await?;

    let earlier = run.run_file()?.entries;
    let mut cells = Vec::new();
    for cell in &plan.cells {
        let measuring = active_cell(cell, &plan, registry, &tools, &crew, &history)?;
        consistency::check_definition(&measuring, &run)?;
        resume::check_machines(&measuring, &run, &earlier, &crew)?;
        cells.push(measuring);
    }
    let wanted = |at: usize| matches!(next(&cells, at, job.stopping_rule, &plan.sampling), NextStep::Attempt(..));
    let open = (0..cells.len()).filter(|at| wanted(*at)).count();
    let is_recorded = |cell: &Cell| earlier.iter().any(|entry| entry.cells.contains(&cell.id));
    if open == 0 && !earlier.is_empty() && plan.cells.iter().all(is_recorded) {
        watch(started_event(&cells, &plan, open));
        record_definitions(&run, &cells)?.into_iter().for_each(|note| watch(Progress::Note(note)));
        let bench = RunContext {
            pool: crew,
            lost: BTreeSet::new(),
            other_runs: OtherRuns::default(),
            sampling: plan.sampling,
            cancel: job.cancel.clone(),
            run,
            journal,
            history,
        };
        let publisher = job.publisher;
        SampleLoop { context: bench, cells, ended: BTreeSet::new(), referee: None, publisher, watch: &mut watch }
            .publish_pending()
            .await?;
        return Ok(RunEnd::Complete);
    }
    let (other_runs, warnings) = OtherRuns::announce(&crew).await?;
    watch(started_event(&cells, &plan, open));
    warnings.into_iter().for_each(|warning| watch(Progress::Warning(warning)));
    for at in (0..cells.len()).filter(|at| wanted(*at)) {
        consistency::check_build(&cells[at], &crew, &plan.sampling, &job.cancel).await?;
    }
    resume::kernel_change_notes(&earlier, &cells, &crew).into_iter().for_each(|note| watch(Progress::Note(note)));
    if let Some(kept) = resume::work_change_note(&earlier, &cells, &plan.sampling) {
        watch(Progress::Note(kept));
    }

    let entry = run.add_entry(RunEntry {
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        version: job.version.to_owned(),
        program_sha256: job.program_sha256,
        command: job.command,
        plan: job.plan_name,
        plan_text: job.plan_text,
        sampling: serde_json::to_value(&plan.sampling).map_err(RunError::Sampling)?,
        seed: job.seed,
        cells: plan.cells.iter().map(|cell| cell.id.clone()).collect(),
        facts: crew.workers.iter().map(|it| (it.worker.name().clone(), Facts::clone(&it.facts))).collect(),
        hosts: job.hosts,
        metadata: job.metadata,
    })?;
    // After run.json: a folder that has definitions alone would not be known for a run.
    record_definitions(&run, &cells)?.into_iter().for_each(|note| watch(Progress::Note(note)));
    let mut bench = RunContext {
        pool: crew,
        lost: BTreeSet::new(),
        other_runs,
        sampling: plan.sampling.clone(),
        cancel: job.cancel.clone(),
        run,
        journal,
        history,
    };
    let boot_id = bench.pool.workers.first().map(|first| first.facts.boot_id.clone()).unwrap_or_default();
    bench.write(JournalEvent::EntryStarted { entry, boot_id })?;
    environment::record_states(&bench.run, entry, &job.host_states)?;

    let blocks = blocks(&plan.cells);
    let order = plan.sampling.order;
    let (referee, publisher) = (job.stopping_rule, job.publisher);
    let mut taking =
        SampleLoop { context: bench, cells, ended: BTreeSet::new(), referee, publisher, watch: &mut watch };
    let scheduled = match taking.record_environment(entry, &plan, registry).await {
        Ok(()) => schedule(&blocks, order, job.seed, &mut taking).await,
        Err(error) => Err(error),
    };
    if matches!(scheduled, Err(RunError::Lost { .. })) {
        taking.end_abandoned_cells().await?;
    }
    let cleaned = taking.clean_up().await;
    let SampleLoop { context: mut bench, .. } = taking;

    let interrupted = *job.cancel.borrow();
    if scheduled.is_ok() {
        let after = environment::record(&bench.run, entry, "after", &plan, registry, &bench.pool, &bench.lost).await?;
        // Nothing is left to be measured on them.
        after.into_iter().for_each(|(worker, why)| {
            watch(Progress::Warning(missing_environment_warning(&worker, &why, "at the end")))
        });
    }
    let how = match (&scheduled, interrupted) {
        (Err(_), _) => EntryEnd::Failed,
        (Ok(()), true) => EntryEnd::Interrupted,
        (Ok(()), false) => EntryEnd::Finished,
    };
    let ended = bench.write(JournalEvent::EntryEnded { entry, outcome: how });
    scheduled?;
    cleaned?;
    ended?;
    Ok(if interrupted { RunEnd::Interrupted } else { RunEnd::Finished })
}

/// Records what the cells are, and the tests that others would not know, with the files that these name. What of them is
/// not in the run comes back, a sentence each.
fn record_definitions(run: &RunFolder, cells: &[ActiveCell]) -> Result<Vec<String>, RunError> {
    let mut notes = Vec::new();
    // The cells of one serial share a file, and stand beside each other in a plan.
    for serial in cells.chunk_by(|one, next| run.serial_folder(&one.cell.id) == run.serial_folder(&next.cell.id)) {
        let id = &serial[0].cell.id;
        let before = run.definitions(id)?;
        let mut definitions = before.clone();
        serial.iter().for_each(|cell| definitions.put(recorded_definition(cell, before.of(&cell.cell.id))));
        if definitions != before {
            run.write_definitions(id, &definitions)?;
        }
        if let Some(text) = serial[0].test.definition() {
            // Before the definition, which cannot be read where a file is neither in its place nor listed.
            notes.extend(copy_files(run, serial)?);
            run.store_test_definition(&id.test, &wb_plan::masking::mask_definition(text))?;
        }
    }
    Ok(notes)
}

/// A cell as it is recorded. Where it cannot be measured now, its samples keep the provenance that they were taken with.
fn recorded_definition(cell: &ActiveCell, before: Option<&CellDefinition>) -> CellDefinition {
    let definition = cell.definition.clone();
    let before = before.filter(|_| cell.cell.unsupported.is_some() && !cell.studied.is_empty());
    let provenance = before.map(|before| before.provenance.clone()).unwrap_or(definition.provenance);
    CellDefinition { provenance, ..definition }
}

/// Copies the files that the definition of a serial's test names; says which of them have no copy.
fn copy_files(run: &RunFolder, serial: &[ActiveCell]) -> Result<Vec<String>, RunError> {
    let named: BTreeSet<_> = serial.iter().flat_map(|cell| cell.test.files(&cell.cell.params)).collect();
    let named: Vec<_> = named.into_iter().map(|file| (file.path, file.location)).collect();
    let test = &serial[0].cell.id.test;
    let new = run.copy_files(test, &named)?;
    let note = |file: DefinitionFile| match file.copy {
        FileCopy::Whole { .. } => None,
        FileCopy::Masked { .. } => Some(format!("{test}: `{}` is recorded with its secrets masked", file.path)),
        FileCopy::Missing { reason: why } => {
            let hash = if file.sha256.is_some() { "recorded by its hash alone" } else { "not recorded" };
            Some(format!("{test}: `{}` is {hash}: {why}", file.path))
        }
    };
    Ok(new.into_iter().filter_map(note).collect())
}

fn active_cell(
    cell: &Cell,
    plan: &Plan,
    registry: &Registry,
    tools: &ToolInventory,
    crew: &WorkerPool,
    history: &History,
) -> Result<ActiveCell, RunError> {
    let open = |open: &str| RunError::Open { cell: Box::new(cell.id.clone()), open: open.to_owned() };
    let test = registry.test(cell.id.test.as_str()).ok_or_else(|| open("the test"))?.clone();
    let mut provenance = tools.provenance(cell, &test.requires(&cell.params), crew);
    provenance.extend(test.source_hashes(&cell.params));
    let definition = CellDefinition {
        cell: cell.id.clone(),
        key: cell.key.clone().ok_or_else(|| open("the key"))?,
        version: cell.version,
        summary: test.declaration().summary,
        params: mask_params(&cell.params),
        metrics: test.metrics(&cell.params),
        rule: cell.rule,
        retakes: plan.sampling.retakes,
        min_time: (!test.sets_duration(&cell.params)).then_some(plan.sampling.min_time),
        unsupported: cell.unsupported.clone(),
        teams: if is_local(&cell.teams) { Vec::new() } else { cell.teams.clone() },
        provenance,
    };
    let attempts = history.attempts(&cell.id).iter().cloned();
    let studied = attempts.map(|attempt| StudiedAttempt::of(test.as_ref(), &cell.params, attempt)).collect();
    ActiveCell::new(cell.clone(), definition, test, studied).map_err(|why| open(&why))
}

/// Whether it is this machine alone that measures, which goes without saying.
fn is_local(teams: &[Roles]) -> bool {
    all_workers(teams).into_iter().all(|worker| *worker == WorkerName::local())
}

/// The parameters as they are recorded: variables of the environment may hold secrets, and so may addresses.
fn mask_params(params: &Params) -> Params {
    let shown = |(name, value): (&String, &ParamValue)| {
        let value = match (name.as_str(), value) {
            ("env" | "before", value) => map_texts(value, &secrets::mask_argument),
            (_, value) => map_texts(value, &secrets::mask_url_credentials),
        };
        (name.clone(), value)
    };
    params.iter().map(shown).collect()
}

/// A value with each text in it changed.
fn map_texts(value: &ParamValue, change: &dyn Fn(&str) -> String) -> ParamValue {
    match value {
        ParamValue::Text(text) => ParamValue::Text(change(text)),
        ParamValue::List(all) => ParamValue::List(all.iter().map(|value| map_texts(value, change)).collect()),
        other => other.clone(),
    }
}

/// What a cell wants next: nothing more where the referee says so.
fn next(cells: &[ActiveCell], at: usize, referee: Option<&StoppingRule>, sampling: &Sampling) -> NextStep {
    match cells[at].next(sampling) {
        wanted @ NextStep::Attempt(..) => {
            referee.and_then(|referee| referee(cells, at)).map_or(wanted, NextStep::Finish)
        }
        nothing => nothing,
    }
}

fn started_event(cells: &[ActiveCell], plan: &Plan, open: usize) -> Progress {
    let unsupported = |cell: &ActiveCell| Some((cell.cell.id.clone(), cell.cell.unsupported.clone()?));
    let unsupported: Vec<(CellId, String)> = cells.iter().filter_map(unsupported).collect();
    Progress::Started {
        cells: open,
        complete: cells.len() - open - unsupported.len(),
        unsupported,
        duration: cells.iter().map(|cell| cell.duration_left(plan)).sum(),
    }
}

fn blocks(cells: &[Cell]) -> Vec<Vec<usize>> {
    let last = cells.iter().map(|cell| cell.block).max().unwrap_or(0);
    (0..=last).map(|block| (0..cells.len()).filter(|at| cells[*at].block == block).collect()).collect()
}

/// Takes samples, one turn of a cell at a time.
struct SampleLoop<'a, W> {
    context: RunContext,
    cells: Vec<ActiveCell>,
    /// Those of which no more samples are taken.
    ended: BTreeSet<usize>,
    referee: Option<&'a StoppingRule>,
    publisher: Option<&'a Publisher>,
    watch: &'a mut W,
}

impl<W: FnMut(Progress)> Sampler for SampleLoop<'_, W> {
    type Error = RunError;

    async fn turn(&mut self, at: usize) -> Result<Turn, RunError> {
        loop {
            if *self.context.cancel.borrow() {
                return Ok(Turn::Stop);
            }
            let (purpose, sample) = match self.next(at) {
                NextStep::Attempt(purpose, sample) => (purpose, sample),
                NextStep::Finish(by) => {
                    self.end(at, by).await?;
                    return Ok(Turn::Done);
                }
            };
            self.attempt(at, purpose, sample).await?;
            if purpose == Purpose::Sample {
                return self.after_sample(at).await;
            }
        }
    }
}

/// A worker whose environment was not recorded.
fn missing_environment_warning(worker: &WorkerName, why: &str, moment: &str) -> String {
    format!("the worker `{worker}` is lost: {why}; its environment {moment} is not recorded")
}

impl<W: FnMut(Progress)> SampleLoop<'_, W> {
    /// Records what the workers are like before the first sample; continues without those that are lost.
    async fn record_environment(&mut self, entry: u32, plan: &Plan, registry: &Registry) -> Result<(), RunError> {
        let RunContext { run, pool: crew, lost, .. } = &self.context;
        for (worker, why) in environment::record(run, entry, "before", plan, registry, crew, lost).await? {
            let why = self.context.explain_loss(&worker, why).await;
            (self.watch)(Progress::Warning(missing_environment_warning(&worker, &why, "at the start")));
            self.drop_worker(worker, why)?;
        }
        Ok(())
    }

    /// Continues without a worker, unless no other is left.
    fn drop_worker(&mut self, worker: WorkerName, why: String) -> Result<(), RunError> {
        let RunContext { lost, pool: crew, .. } = &mut self.context;
        lost.insert(worker.clone());
        let is_left = crew.workers.iter().any(|member| !lost.contains(member.worker.name()));
        if is_left { Ok(()) } else { Err(RunError::Lost { worker, why }) }
    }

    fn next(&self, at: usize) -> NextStep {
        let lost = &self.context.lost;
        if let Some(gone) = all_workers(&self.cells[at].cell.teams).into_iter().find(|worker| lost.contains(*worker)) {
            return NextStep::Finish(format!("its worker `{gone}` is lost"));
        }
        next(&self.cells, at, self.referee, &self.context.sampling)
    }

    async fn attempt(&mut self, at: usize, purpose: Purpose, sample: u32) -> Result<(), RunError> {
        let sampling = &self.context.sampling;
        let cell = &self.cells[at];
        (self.watch)(Progress::AttemptStarted {
            cell: cell.cell.id.clone(),
            purpose,
            sample,
            min_samples: cell.definition.rule.min_samples(),
            cell_seconds: cell.seconds_left(sampling),
            seconds: self.cells.iter().map(|cell| cell.seconds_left(sampling)).sum(),
        });
        let cell = &mut self.cells[at];
        for warning in self.context.attempt(cell, purpose, sample).await? {
            (self.watch)(Progress::Warning(warning));
        }
        let Some(newest) = cell.studied.last() else { return Ok(()) };
        let primary = cell.definition.metrics.iter().find(|metric| metric.primary);
        let value = primary.and_then(|metric| Some((metric.clone(), newest.measurement.as_ref()?.get(metric)?)));
        (self.watch)(Progress::AttemptEnded {
            cell: cell.cell.id.clone(),
            purpose,
            sample,
            outcome: newest.attempt.ended.outcome.clone(),
            invalid: cell.last_invalid_reason(),
            value,
            disturbances: newest.attempt.ended.disturbances.clone(),
        });
        match &newest.attempt.ended.outcome {
            AttemptOutcome::Lost { worker, reason: why } => {
                let (worker, why) = (worker.clone(), why.clone());
                self.drop_worker(worker, why)
            }
            _ => Ok(()),
        }
    }

    /// Ends the cells that no worker is left for.
    async fn end_abandoned_cells(&mut self) -> Result<(), RunError> {
        for at in 0..self.cells.len() {
            match self.next(at) {
                NextStep::Finish(by) if !self.ended.contains(&at) => self.end(at, by).await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A cell that is done is taken down at once, not when its next turn would come.
    async fn after_sample(&mut self, at: usize) -> Result<Turn, RunError> {
        match self.next(at) {
            NextStep::Attempt(..) => Ok(Turn::Again),
            NextStep::Finish(by) => {
                self.end(at, by).await?;
                Ok(Turn::Done)
            }
        }
    }

    async fn end(&mut self, at: usize, by: String) -> Result<(), RunError> {
        let cell = &mut self.cells[at];
        let id = cell.cell.id.clone();
        let problems = self.context.clean_up(cell).await?;
        let key = cell.definition.key.clone();
        // What was cleaned up badly ends no run: the group was torn down all the same.
        self.warn_cleanup_problems(&id, problems);
        if self.context.history.end_reason(&id) != Some(by.as_str()) {
            self.context.write(JournalEvent::CellEnded { cell: id.clone(), key, reason: by.clone() })?;
        }
        (self.watch)(Progress::CellEnded { cell: id.clone(), reason: by });
        self.ended.insert(at);
        let of_test = |other: &CellId| test_of(other) == test_of(&id);
        match (0..self.cells.len()).all(|at| self.ended.contains(&at) || !of_test(&self.cells[at].cell.id)) {
            true => self.publish(&id).await,
            false => Ok(()),
        }
    }

    /// Has the test of a cell published, with its results, where it is due. Failing ends nothing.
    async fn publish(&mut self, of: &CellId) -> Result<(), RunError> {
        let Some(publisher) = self.publisher else { return Ok(()) };
        let test = test_of(of);
        if !is_due(&self.context.run.journal_lines()?, &Some(test.clone())) {
            return Ok(());
        }
        let history = &self.context.history;
        let cells = self.cells.iter().filter(|cell| test_of(&cell.cell.id) == test);
        let cells = cells.map(|cell| (&cell.definition, cell.studied.clone(), history.end_reason(&cell.cell.id)));
        wb_study::write_serial(&self.context.run, cells.collect())?;
        let published = publisher.publish(&self.context.run, Some(test.clone()), &self.context.cancel).await?;
        if let StepOutcome::Failed { reason: why } = &published.outcome {
            (self.watch)(Progress::Warning(format!("{test} is not published: {why}")));
        }
        self.context.write(JournalEvent::Published(published))
    }

    /// Has published what should have been and was not.
    async fn publish_pending(&mut self) -> Result<(), RunError> {
        let cells: BTreeMap<String, CellId> =
            self.cells.iter().map(|cell| (test_of(&cell.cell.id), cell.cell.id.clone())).collect();
        for cell in cells.values() {
            self.publish(cell).await?;
        }
        Ok(())
    }

    async fn clean_up(&mut self) -> Result<(), RunError> {
        for at in 0..self.cells.len() {
            let problems = self.context.clean_up(&mut self.cells[at]).await?;
            self.warn_cleanup_problems(&self.cells[at].cell.id.clone(), problems);
        }
        Ok(())
    }

    fn warn_cleanup_problems(&mut self, cell: &CellId, cleanup_problems: Vec<String>) {
        for problem in cleanup_problems {
            (self.watch)(Progress::Warning(format!("cleanup of {cell} failed: {problem}")));
        }
    }
}
