//! Executes a run from start to end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tokio::sync::watch;
use wb_model::roles::all_workers;
use wb_model::{AttemptOutcome, AttemptPurpose, CellId, Facts, ParamValue, Params, Roles, WorkerName, secrets};
use wb_plan::{Cell, Plan, Sampling};
use wb_record::definition_files::{DefinitionFile, FileCopy};
use wb_record::journal::InvocationEnd;
use wb_record::steps::StepOutcome;
use wb_record::{CellDefinition, History, Invocation, JournalEvent, RunFolder};
use wb_study::findings::describe_machine_change;
use wb_test::{Registry, TestCell};

use crate::active_cell::{ActiveCell, NextStep, decode_cells};
use crate::attempt::RunContext;
use crate::other_runs::OtherRuns;
use crate::provenance::{self, ToolInventory};
use crate::publish::{Publisher, is_due, test_of};
use crate::schedule::{Block, Sampler, Turn, schedule};
use crate::worker_pool::WorkerPool;
use crate::{Progress, RunError, consistency, environment, knob_trial, resume};

/// Everything a run needs: plan, workers, run folder, seed and metadata.
pub struct RunSpec<'a> {
    /// The run folder, new or to be resumed.
    pub folder: &'a Path,
    pub plan: Plan,
    /// Name of the plan, or the tests as given on the command line.
    pub plan_name: String,
    pub plan_text: Option<String>,
    /// Command line, secrets masked.
    pub command: Vec<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Inventory parameters of the hosts.
    pub hosts: BTreeMap<WorkerName, serde_json::Value>,
    pub metadata: BTreeMap<String, String>,
    pub version: &'a str,
    pub program_sha256: String,
    pub agent_sha256: String,
    pub registry: &'a Registry,
    pub pool: WorkerPool,
    /// Profile states of the hosts, for the record.
    pub host_states: Vec<serde_json::Value>,
    /// Becomes true when the user cancels the run.
    pub cancel: watch::Receiver<bool>,
    pub stopping_rule: Option<&'a StoppingRule>,
    /// Publishes each test when its last cell has ended.
    pub publisher: Option<&'a Publisher>,
    pub input_recorder: Option<&'a InputRecorder<'a>>,
}

/// Stopping rule from outside: called with all cells and the index of one before its next sample. It must be
/// deterministic in the samples, so that an interrupted run ends where it would have ended.
pub type StoppingRule = dyn Fn(&[ActiveCell], usize) -> StoppingDecision + Send + Sync;

/// What a stopping rule decides about a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoppingDecision {
    Continue,
    /// Let cells with fewer samples catch up, after an interruption or a failure.
    Wait,
    /// No more samples are needed, for this reason.
    Finish(String),
}

/// Records the files outside of a run folder that a run is measured with: called with the locked folder when the run's
/// invocation is written and nothing is measured yet. Returns a warning if they cannot be recorded.
pub type InputRecorder<'a> = dyn Fn(&RunFolder) -> Option<String> + Send + Sync + 'a;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// Every cell is measured as far as its rule and limits allow.
    Finished,
    /// The user cancelled; the same command resumes the run.
    Interrupted,
    AlreadyComplete,
}

/// Executes a run. `watch` receives the progress events.
pub async fn run(job: RunSpec<'_>, mut watch: impl FnMut(Progress)) -> Result<RunEnd, RunError> {
    let RunSpec { folder, mut plan, registry, pool, .. } = job;
    let run = RunFolder::create(folder)?;
    let (journal, lines) = run.journal()?;
    let history = History::new(&run, &lines);
    resume::check_keys(&plan, &run, &history)?;
    let test_cells = decode_cells(&plan, registry)?;
    let tools = provenance::check_requirements(&mut plan, &test_cells, &pool).await?;
    knob_trial::try_knobs(&mut plan, &test_cells, &pool, &history).await?;

    let earlier = run.run_file()?.invocations;
    let mut cells = Vec::new();
    for (cell, test_cell) in plan.cells.iter().zip(test_cells) {
        let measuring = active_cell(cell, test_cell, &plan, &tools, &pool, &history)?;
        consistency::check_definition(&measuring, &run)?;
        resume::check_machines(&measuring, &run, &earlier, &pool)?;
        cells.push(measuring);
    }
    let mut context = RunContext {
        pool,
        lost: BTreeSet::new(),
        other_runs: OtherRuns::default(),
        sampling: plan.sampling.clone(),
        cancel: job.cancel.clone(),
        run,
        journal,
        history,
    };
    let is_open = |index: usize| !matches!(next(&cells, index, job.stopping_rule, &plan.sampling), Step::Finish(_));
    let open: BTreeSet<usize> = (0..cells.len()).filter(|index| is_open(*index)).collect();
    let is_recorded = |cell: &Cell| earlier.iter().any(|invocation| invocation.cells.contains(&cell.id));
    if open.is_empty() && !earlier.is_empty() && plan.cells.iter().all(is_recorded) {
        watch(started_event(&cells, &plan, open.len()));
        record_definitions(&context.run, &cells)?.into_iter().for_each(|note| watch(Progress::Note(note)));
        let publisher = job.publisher;
        SampleLoop { context, cells, open, ended: BTreeSet::new(), stopping_rule: None, publisher, watch: &mut watch }
            .publish_pending()
            .await?;
        return Ok(RunEnd::AlreadyComplete);
    }
    let (other_runs, warnings) = OtherRuns::announce(&context.pool).await?;
    context.other_runs = other_runs;
    watch(started_event(&cells, &plan, open.len()));
    warnings.into_iter().for_each(|warning| watch(Progress::Warning(warning)));
    let mut build_problems = Vec::new();
    for &index in &open {
        let problems = consistency::check_build(&cells[index], &context.pool, &plan.sampling, &job.cancel).await?;
        build_problems.push((index, problems));
    }
    resume::kernel_change_notes(&earlier, &cells, &context.pool)
        .into_iter()
        .for_each(|note| watch(Progress::Note(note)));
    if let Some(warning) = resume::work_change_warning(&earlier, &cells, &plan.sampling) {
        watch(Progress::Warning(warning));
    }

    let workers = &context.pool.workers;
    let invocation = context.run.add_invocation(Invocation {
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        version: job.version.to_owned(),
        program_sha256: job.program_sha256,
        agent_sha256: Some(job.agent_sha256),
        command: job.command,
        plan: job.plan_name,
        plan_text: job.plan_text,
        sampling: serde_json::to_value(&plan.sampling).map_err(RunError::Sampling)?,
        seed: job.seed,
        cells: plan.cells.iter().map(|cell| cell.id.clone()).collect(),
        facts: workers.iter().map(|member| (member.worker.name().clone(), Facts::clone(&member.facts))).collect(),
        hosts: job.hosts,
        metadata: job.metadata,
    })?;
    // After run.json: a folder with definitions alone would not be recognised as a run.
    record_definitions(&context.run, &cells)?.into_iter().for_each(|note| watch(Progress::Note(note)));
    if let Some(warning) = job.input_recorder.and_then(|record| record(&context.run)) {
        watch(Progress::Warning(warning));
    }
    let boot_id = context.pool.workers.first().map(|first| first.facts.boot_id.clone()).unwrap_or_default();
    context.write(JournalEvent::InvocationStarted { invocation, boot_id })?;
    environment::record_states(&context.run, invocation, &job.host_states)?;

    let blocks = blocks(&plan.cells);
    let order = plan.sampling.order;
    let (stopping_rule, publisher) = (job.stopping_rule, job.publisher);
    let mut sampler =
        SampleLoop { context, cells, open, ended: BTreeSet::new(), stopping_rule, publisher, watch: &mut watch };
    for (index, problems) in build_problems {
        sampler.record_problems(index, problems)?;
    }
    let sampling_result = match sampler.record_environment(invocation).await {
        Ok(()) => schedule(&blocks, order, job.seed, &mut sampler).await,
        Err(error) => Err(error),
    };
    if matches!(sampling_result, Err(RunError::Lost { .. })) {
        sampler.end_abandoned_cells().await?;
    }
    let cleanup_result = sampler.clean_up().await;
    let SampleLoop { mut context, cells, .. } = sampler;

    let interrupted = *job.cancel.borrow();
    if sampling_result.is_ok() {
        let after =
            environment::record(&context.run, invocation, "after", &cells, &context.pool, &context.lost).await?;
        // The loss has no further effect: the measurements on these workers are complete.
        after.into_iter().for_each(|(worker, reason)| {
            watch(Progress::Warning(missing_environment_warning(&worker, &reason, "at the end")))
        });
        for (worker, differences) in context.changed_facts().await? {
            watch(Progress::Warning(describe_machine_change(&worker, &differences)));
            context.write(JournalEvent::FactsChanged { worker, differences })?;
        }
    }
    let how = match (&sampling_result, interrupted) {
        (Err(_), _) => InvocationEnd::Failed,
        (Ok(()), true) => InvocationEnd::Interrupted,
        (Ok(()), false) => InvocationEnd::Finished,
    };
    let invocation_end = context.write(JournalEvent::InvocationEnded { invocation, outcome: how });
    sampling_result?;
    cleanup_result?;
    invocation_end?;
    Ok(if interrupted { RunEnd::Interrupted } else { RunEnd::Finished })
}

/// Records the definitions of the cells and of tests that are not built in, with the files that these name. Returns a
/// note for each file that is not copied completely.
fn record_definitions(run: &RunFolder, cells: &[ActiveCell]) -> Result<Vec<String>, RunError> {
    let mut notes = Vec::new();
    // The cells of one serial share a file, and are adjacent in a plan.
    for serial in
        cells.chunk_by(|cell, next| run.serial_folder(&cell.planned.id) == run.serial_folder(&next.planned.id))
    {
        let id = &serial[0].planned.id;
        let before = run.definitions(id)?;
        let mut definitions = before.clone();
        serial.iter().for_each(|cell| definitions.insert(recorded_definition(cell, before.of(&cell.planned.id))));
        if definitions != before {
            run.write_definitions(id, &definitions)?;
        }
        if let Some(text) = serial[0].test_cell.test().definition() {
            // Before the definition, which cannot be read if one of its files is neither in place nor listed.
            notes.extend(copy_files(run, serial)?);
            run.store_test_definition(&id.test, &wb_plan::masking::mask_definition(text))?;
        }
    }
    Ok(notes)
}

/// Returns the definition to record for a cell. If it cannot be measured now, its samples keep their recorded
/// provenance.
fn recorded_definition(cell: &ActiveCell, before: Option<&CellDefinition>) -> CellDefinition {
    let definition = cell.definition.clone();
    let before = before.filter(|_| cell.planned.unsupported.is_some() && !cell.evaluated.is_empty());
    let provenance = before.map(|before| before.provenance.clone()).unwrap_or(definition.provenance);
    CellDefinition { provenance, ..definition }
}

/// Copies the files that the definition of a serial's test names; returns a note for each without a complete copy.
fn copy_files(run: &RunFolder, serial: &[ActiveCell]) -> Result<Vec<String>, RunError> {
    let files: BTreeSet<_> = serial.iter().flat_map(|cell| cell.test_cell.files()).collect();
    let files: Vec<_> = files.into_iter().map(|file| (file.path, file.location)).collect();
    let test = &serial[0].planned.id.test;
    let new = run.copy_files(test, &files)?;
    let note = |file: DefinitionFile| match file.copy {
        FileCopy::Whole { .. } => None,
        FileCopy::Masked { .. } => Some(format!("{test}: `{}` is recorded with its secrets masked", file.path)),
        FileCopy::Missing { reason } => {
            let hash = if file.sha256.is_some() { "recorded by its hash alone" } else { "not recorded" };
            Some(format!("{test}: `{}` is {hash}: {reason}", file.path))
        }
    };
    Ok(new.into_iter().filter_map(note).collect())
}

fn active_cell(
    cell: &Cell,
    test_cell: Box<dyn TestCell>,
    plan: &Plan,
    tools: &ToolInventory,
    pool: &WorkerPool,
    history: &History,
) -> Result<ActiveCell, RunError> {
    let open_key = || RunError::OpenValues { cell: Box::new(cell.id.clone()), open: "the key".to_owned() };
    let mut provenance = tools.provenance(cell, &test_cell.requires(), pool);
    provenance.extend(test_cell.source_hashes());
    let definition = CellDefinition {
        cell: cell.id.clone(),
        key: cell.key.clone().ok_or_else(open_key)?,
        version: cell.version,
        summary: test_cell.test().declaration().summary,
        params: mask_params(&cell.params),
        metrics: cell.criteria.apply(test_cell.metrics()),
        criteria: cell.criteria.clone(),
        rule: cell.rule,
        retakes: plan.sampling.retakes,
        min_time: (!test_cell.sets_duration()).then_some(plan.sampling.min_time),
        unsupported: cell.unsupported.clone(),
        roles: if is_local(&cell.roles) { Vec::new() } else { cell.roles.clone() },
        provenance,
    };
    Ok(ActiveCell::new(cell.clone(), definition, test_cell, history))
}

/// Whether only the local machine measures, which is the default and not recorded.
fn is_local(roles: &[Roles]) -> bool {
    all_workers(roles).into_iter().all(|worker| *worker == WorkerName::local())
}

fn mask_params(params: &Params) -> Params {
    let masked = |(name, value): (&String, &ParamValue)| {
        (name.clone(), map_texts(value, &|text| secrets::mask_param(name, text)))
    };
    params.iter().map(masked).collect()
}

fn map_texts(value: &ParamValue, change: &dyn Fn(&str) -> String) -> ParamValue {
    match value {
        ParamValue::Text(text) => ParamValue::Text(change(text)),
        ParamValue::List(all) => ParamValue::List(all.iter().map(|value| map_texts(value, change)).collect()),
        other => other.clone(),
    }
}

/// The next step of a cell in view of the external stopping rule.
enum Step {
    Attempt(AttemptPurpose, u32),
    Wait,
    Finish(String),
}

fn next(cells: &[ActiveCell], index: usize, stopping_rule: Option<&StoppingRule>, sampling: &Sampling) -> Step {
    match cells[index].next(sampling) {
        NextStep::Attempt(purpose, sample) => {
            // Before each sample, and not after each round: cells that are ahead wait.
            match stopping_rule.map_or(StoppingDecision::Continue, |rule| rule(cells, index)) {
                StoppingDecision::Continue => Step::Attempt(purpose, sample),
                StoppingDecision::Wait => Step::Wait,
                StoppingDecision::Finish(reason) => Step::Finish(reason),
            }
        }
        NextStep::Finish(reason) => Step::Finish(reason),
    }
}

fn started_event(cells: &[ActiveCell], plan: &Plan, open: usize) -> Progress {
    let unsupported = |cell: &ActiveCell| Some((cell.planned.id.clone(), cell.planned.unsupported.clone()?));
    let unsupported: Vec<(CellId, String)> = cells.iter().filter_map(unsupported).collect();
    Progress::Started {
        cells: open,
        complete: cells.len() - open - unsupported.len(),
        unsupported,
        duration: cells.iter().filter_map(|cell| cell.duration_left(plan)).sum(),
        unestimated: cells.iter().filter(|cell| cell.duration_left(plan).is_none()).count(),
    }
}

fn blocks(cells: &[Cell]) -> Vec<Block> {
    let last = cells.iter().map(|cell| cell.block).max().unwrap_or(0);
    let block = |block: usize| {
        let mut groups: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
        for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.block == block) {
            match groups.iter_mut().find(|(group, _)| group.is_some() && *group == cell.group) {
                // The variants of a case are a group, which is sampled one after the other in each round.
                Some((_, members)) => members.push(index),
                None => groups.push((cell.group, vec![index])),
            }
        }
        groups.into_iter().map(|(_, members)| members).collect()
    };
    (0..=last).map(block).collect()
}

struct SampleLoop<'a, W> {
    context: RunContext,
    cells: Vec<ActiveCell>,
    /// Those that this invocation measures.
    open: BTreeSet<usize>,
    ended: BTreeSet<usize>,
    stopping_rule: Option<&'a StoppingRule>,
    publisher: Option<&'a Publisher>,
    watch: &'a mut W,
}

impl<W: FnMut(Progress)> Sampler for SampleLoop<'_, W> {
    type Error = RunError;

    async fn turn(&mut self, index: usize) -> Result<Turn, RunError> {
        loop {
            if *self.context.cancel.borrow() {
                return Ok(Turn::Stop);
            }
            let (purpose, sample) = match self.next(index) {
                Step::Attempt(purpose, sample) => (purpose, sample),
                Step::Wait => return Ok(Turn::Again),
                Step::Finish(reason) => {
                    self.end(index, reason).await?;
                    return Ok(Turn::Done);
                }
            };
            self.attempt(index, purpose, sample).await?;
            if purpose == AttemptPurpose::Sample {
                return self.after_sample(index).await;
            }
        }
    }
}

fn missing_environment_warning(worker: &WorkerName, reason: &str, moment: &str) -> String {
    format!("the worker `{worker}` is lost: {reason}; its environment {moment} is not recorded")
}

impl<W: FnMut(Progress)> SampleLoop<'_, W> {
    /// Records the environments of the workers before the first sample; continues without those that are lost.
    async fn record_environment(&mut self, invocation: u32) -> Result<(), RunError> {
        let RunContext { run, pool, lost, .. } = &self.context;
        for (worker, reason) in environment::record(run, invocation, "before", &self.cells, pool, lost).await? {
            let reason = self.context.explain_loss(&worker, reason).await;
            (self.watch)(Progress::Warning(missing_environment_warning(&worker, &reason, "at the start")));
            self.drop_worker(worker, reason)?;
        }
        Ok(())
    }

    /// Continues without a worker, unless no other is left.
    fn drop_worker(&mut self, worker: WorkerName, reason: String) -> Result<(), RunError> {
        let RunContext { lost, pool, .. } = &mut self.context;
        lost.insert(worker.clone());
        let is_left = pool.workers.iter().any(|member| !lost.contains(member.worker.name()));
        if is_left { Ok(()) } else { Err(RunError::Lost { worker, reason }) }
    }

    fn next(&self, index: usize) -> Step {
        let lost = &self.context.lost;
        let lost_member =
            all_workers(&self.cells[index].planned.roles).into_iter().find(|worker| lost.contains(*worker));
        if let Some(worker) = lost_member {
            return Step::Finish(format!("its worker `{worker}` is lost"));
        }
        next(&self.cells, index, self.stopping_rule, &self.context.sampling)
    }

    async fn attempt(&mut self, index: usize, purpose: AttemptPurpose, sample: u32) -> Result<(), RunError> {
        // A stopping rule may take up a cell again that had nothing to measure.
        self.open.insert(index);
        let sampling = &self.context.sampling;
        let cell = &self.cells[index];
        (self.watch)(Progress::AttemptStarted {
            cell: cell.planned.id.clone(),
            purpose,
            sample,
            min_samples: cell.definition.rule.min_samples(),
            cell_seconds: cell.seconds_left(sampling),
            seconds: self.cells.iter().map(|cell| cell.seconds_left(sampling)).sum(),
        });
        let cell = &mut self.cells[index];
        for warning in self.context.attempt(cell, purpose, sample).await? {
            (self.watch)(Progress::Warning(warning));
        }
        let Some(newest) = cell.evaluated.last() else { return Ok(()) };
        let primary = cell.definition.metrics.iter().find(|metric| metric.primary);
        let value = primary.and_then(|metric| Some((metric.clone(), newest.measurement.as_ref()?.get(metric)?)));
        (self.watch)(Progress::AttemptEnded {
            cell: cell.planned.id.clone(),
            purpose,
            sample,
            outcome: newest.attempt.ended.outcome.clone(),
            invalid: cell.last_invalid_reason(),
            value,
            disturbances: newest.attempt.ended.disturbances.clone(),
        });
        match &newest.attempt.ended.outcome {
            AttemptOutcome::Lost { worker, reason } => {
                let (worker, reason) = (worker.clone(), reason.clone());
                self.drop_worker(worker, reason)
            }
            _ => Ok(()),
        }
    }

    /// Ends the cells whose workers are all lost.
    async fn end_abandoned_cells(&mut self) -> Result<(), RunError> {
        for index in 0..self.cells.len() {
            match self.next(index) {
                Step::Finish(reason) if !self.ended.contains(&index) => self.end(index, reason).await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends a cell that is done at once, not at its next turn.
    async fn after_sample(&mut self, index: usize) -> Result<Turn, RunError> {
        match self.next(index) {
            Step::Attempt(..) | Step::Wait => Ok(Turn::Again),
            Step::Finish(reason) => {
                self.end(index, reason).await?;
                Ok(Turn::Done)
            }
        }
    }

    async fn end(&mut self, index: usize, by: String) -> Result<(), RunError> {
        // A failed cleanup does not end the run: the group was torn down all the same.
        let problems = self.context.clean_up(&mut self.cells[index]).await;
        self.record_problems(index, problems)?;
        let (id, key) = (self.cells[index].planned.id.clone(), self.cells[index].definition.key.clone());
        if self.context.history.end_reason(&id) != Some(by.as_str()) {
            self.context.write(JournalEvent::CellEnded { cell: id.clone(), key, reason: by.clone() })?;
        }
        if self.open.contains(&index) {
            (self.watch)(Progress::CellEnded { cell: id.clone(), reason: by });
        }
        self.ended.insert(index);
        self.cells[index].end();
        let of_test = |other: &CellId| test_of(other) == test_of(&id);
        if (0..self.cells.len()).all(|index| self.ended.contains(&index) || !of_test(&self.cells[index].planned.id)) {
            self.publish(&id).await
        } else {
            Ok(())
        }
    }

    /// Publishes the test of a cell with its results, if due. A failure does not end the run.
    async fn publish(&mut self, cell_id: &CellId) -> Result<(), RunError> {
        let Some(publisher) = self.publisher else { return Ok(()) };
        let test = test_of(cell_id);
        if !is_due(&self.context.run.journal_lines()?, &Some(test.clone())) {
            return Ok(());
        }
        let history = &self.context.history;
        let cells = self.cells.iter().filter(|cell| test_of(&cell.planned.id) == test);
        let cells = cells.map(|cell| (&cell.definition, cell.evaluated.clone(), history.end_reason(&cell.planned.id)));
        wb_study::write_serial(&self.context.run, cells.collect())?;
        let published = publisher.publish(&self.context.run, Some(test.clone()), &self.context.cancel).await?;
        if let StepOutcome::Failed { reason } = &published.outcome {
            (self.watch)(Progress::Warning(format!("{test} was not published: {reason}")));
        }
        self.context.write(JournalEvent::Published(published))
    }

    async fn publish_pending(&mut self) -> Result<(), RunError> {
        let cells: BTreeMap<String, CellId> =
            self.cells.iter().map(|cell| (test_of(&cell.planned.id), cell.planned.id.clone())).collect();
        for cell in cells.values() {
            self.publish(cell).await?;
        }
        Ok(())
    }

    async fn clean_up(&mut self) -> Result<(), RunError> {
        for index in 0..self.cells.len() {
            let problems = self.context.clean_up(&mut self.cells[index]).await;
            self.record_problems(index, problems)?;
        }
        Ok(())
    }

    /// Records the problems of a cleanup outside of attempts, and warns about them.
    fn record_problems(&mut self, index: usize, problems: Vec<String>) -> Result<(), RunError> {
        if problems.is_empty() {
            return Ok(());
        }
        let (cell, key) = (self.cells[index].planned.id.clone(), self.cells[index].definition.key.clone());
        for problem in &problems {
            (self.watch)(Progress::Warning(format!("cleanup of {cell} failed: {problem}")));
        }
        self.context.write(JournalEvent::CleanupFailed { cell, key, problems })
    }
}
