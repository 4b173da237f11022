use std::collections::BTreeSet;

use wb_model::{AttemptOutcome, AttemptPurpose, Nanos, Params, Validity, WorkerName, pluralize};
use wb_plan::{Cell, Plan, Sampling, TimeEstimate};
use wb_record::{CellDefinition, History};
use wb_stats::Budget;
use wb_study::{CellDecision, EvaluatedAttempt, judge};
use wb_test::test::AnyPrepared;
use wb_test::{BUILT_PREFIX, Registry, TestCell, WorkerContext};

use crate::RunError;

/// What a role assignment prepared for all samples of a cell, and its worker context.
pub(crate) type PreparedContext = Option<(WorkerContext, AnyPrepared)>;

/// A cell while it is being measured, with its attempts.
pub struct ActiveCell {
    pub planned: Cell,
    pub definition: CellDefinition,
    pub test_cell: Box<dyn TestCell>,
    /// All attempts so far, including those of earlier invocations.
    pub evaluated: Vec<EvaluatedAttempt>,
    pub(crate) prepared: Vec<PreparedContext>,
    attempts_in_invocation: u32,
    /// Whether this invocation takes no more samples of the cell.
    ended: bool,
}

/// Decodes the parameters of the cells of a plan, in its order.
pub fn decode_cells(plan: &Plan, registry: &Registry) -> Result<Vec<Box<dyn TestCell>>, RunError> {
    let unknown = |cell: &Cell| RunError::OpenValues { cell: Box::new(cell.id.clone()), open: "the test".to_owned() };
    let test_cell = |cell: &Cell| registry.test_cell(cell.id.test.as_str(), &cell.params).ok_or_else(|| unknown(cell));
    plan.cells.iter().map(test_cell).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// Make an attempt for this purpose at the sample with this number.
    Attempt(AttemptPurpose, u32),
    Finish(String),
}

impl ActiveCell {
    pub fn new(planned: Cell, definition: CellDefinition, test_cell: Box<dyn TestCell>, history: &History) -> Self {
        let attempts = history.attempts(&planned.id).iter().cloned();
        let evaluated = attempts
            .map(|attempt| EvaluatedAttempt::evaluate(test_cell.as_ref(), &definition.criteria, attempt))
            .collect();
        Self {
            planned,
            definition,
            test_cell,
            evaluated,
            prepared: Vec::new(),
            attempts_in_invocation: 0,
            ended: false,
        }
    }

    pub fn params(&self) -> &Params {
        &self.planned.params
    }

    /// Returns the calibrated work of its samples on a worker: that of the newest finished attempt.
    pub(crate) fn work(&self, worker: &WorkerName) -> Option<u64> {
        let finished = self.evaluated.iter().rev().filter(|evaluated| evaluated.attempt.is_finished());
        // Calibrated once, in the first attempt: every later sample of the cell does the same work.
        finished.map(|evaluated| &evaluated.attempt.ended).find_map(|ended| match ended.workers.len() {
            0 => ended.work,
            _ => ended.work_by_worker.get(worker).copied(),
        })
    }

    pub fn is_calibrated(&self) -> bool {
        self.planned.roles.iter().any(|assignment| self.work(&assignment.worker).is_some())
    }

    pub fn has_finished(&self) -> bool {
        self.evaluated.iter().any(|evaluated| evaluated.attempt.is_finished())
    }

    /// Whether its samples used programs built by the test.
    pub fn uses_built_programs(&self) -> bool {
        let measured = self.evaluated.iter().filter_map(|evaluated| evaluated.measurement.as_ref());
        measured.flat_map(|measured| measured.provenance.keys()).any(|name| name.starts_with(BUILT_PREFIX))
    }

    pub fn add(&mut self, evaluated: EvaluatedAttempt) {
        self.evaluated.push(evaluated);
        self.attempts_in_invocation += 1;
    }

    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether this invocation takes no more samples of it, even if it could.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    pub fn next(&self, sampling: &Sampling) -> NextStep {
        if let Some(reason) = self.end_reason(sampling) {
            return NextStep::Finish(reason);
        }
        if (self.finished_samples(AttemptPurpose::WarmUp).len() as u32) < sampling.warm_up {
            return NextStep::Attempt(AttemptPurpose::WarmUp, self.next_sample_number(AttemptPurpose::WarmUp));
        }
        NextStep::Attempt(AttemptPurpose::Sample, self.next_sample_number(AttemptPurpose::Sample))
    }

    /// Returns the numbers of the samples for a purpose that have a finished, complete attempt.
    fn finished_samples(&self, purpose: AttemptPurpose) -> BTreeSet<u32> {
        let of_purpose = self.evaluated.iter().filter(|evaluated| evaluated.attempt.ended.purpose == purpose);
        of_purpose
            .filter(|evaluated| evaluated.attempt.is_finished())
            .map(|evaluated| evaluated.attempt.ended.sample)
            .collect()
    }

    /// Returns the number of the first sample for a purpose without a finished attempt.
    fn next_sample_number(&self, purpose: AttemptPurpose) -> u32 {
        let finished = self.finished_samples(purpose);
        (0..).find(|number| !finished.contains(number)).unwrap_or_default()
    }

    fn end_reason(&self, sampling: &Sampling) -> Option<String> {
        if let Some(reason) = &self.planned.unsupported {
            return Some(format!("unsupported: {reason}"));
        }
        // The same rule as that of the study, after every sample: studying the finished run reaches the same outcome.
        let judgement = judge(&self.definition, &self.evaluated, Budget::Left);
        // A majority would not decide which of the values is wrong, so no more samples are taken.
        if let Some(reason) = judgement.contradiction() {
            return Some(reason);
        }
        match judgement.decision {
            CellDecision::Done => return Some("its rule is met".to_owned()),
            CellDecision::NotConverged(_) => return Some("its sample limit is reached".to_owned()),
            CellDecision::Continue => {}
        }
        let this_invocation =
            &self.evaluated[self.evaluated.len().saturating_sub(self.attempts_in_invocation as usize)..];
        if let Some(refused) = this_invocation.last().and_then(|evaluated| match &evaluated.attempt.ended.outcome {
            AttemptOutcome::Refused { reason } => Some(reason),
            _ => None,
        }) {
            return Some(format!("refused: {refused}"));
        }
        let failures = this_invocation.iter().rev().take_while(|evaluated| evaluated.valid().is_none()).count() as u32;
        if failures >= sampling.attempts {
            let last = this_invocation.last().map(EvaluatedAttempt::reason).unwrap_or_default();
            let tries = pluralize(failures as usize, "failed attempt");
            return Some(format!("gave up after {tries}; last: {last}"));
        }
        let seconds: f64 = self.evaluated.iter().map(|evaluated| evaluated.attempt.ended.seconds).sum();
        let valid = self.evaluated.iter().filter(|evaluated| evaluated.valid_sample().is_some()).count();
        let enough = valid >= self.definition.rule.min_samples();
        // A compared cell ends when the comparison is decided, unless a time budget was requested.
        let is_external = self.definition.rule.is_external();
        let budget = sampling.budget(enough && !is_external).filter(|budget| seconds >= budget.seconds())?;
        Some(format!("its time budget of {budget} is spent"))
    }

    /// Estimates its remaining duration, with the minimum and the maximum number of samples of its rule.
    pub fn duration_left(&self, plan: &Plan) -> Option<TimeEstimate> {
        if self.evaluated.is_empty() {
            return if self.end_reason(&plan.sampling).is_some() {
                Some(TimeEstimate::default())
            } else {
                self.planned.is_estimated.then(|| plan.cell_duration(&self.planned))
            };
        }
        let least = self.seconds_left(&plan.sampling);
        if least == 0.0 {
            return Some(TimeEstimate::default());
        }
        let seconds: f64 = self.evaluated.iter().map(|evaluated| evaluated.attempt.ended.seconds).sum();
        let rule = &self.definition.rule;
        let taken = self.finished_samples(AttemptPurpose::Sample).len().max(rule.min_samples());
        let more = rule.with_retakes(self.definition.retakes).max_samples().saturating_sub(taken);
        let most = least + seconds / self.evaluated.len() as f64 * more as f64;
        let budget =
            plan.sampling.budget(!rule.is_external()).map_or(f64::INFINITY, |budget| budget.seconds() - seconds);
        let nanos = |seconds: f64| Nanos((seconds * 1e9) as u64);
        Some(TimeEstimate { min: nanos(least), max: nanos(most.min(budget).max(least)) })
    }

    /// Estimates its remaining time with the minimum number of samples, in seconds.
    pub fn seconds_left(&self, sampling: &Sampling) -> f64 {
        if self.end_reason(sampling).is_some() {
            return 0.0;
        }
        let required = self.definition.rule.min_samples();
        let taken = self.finished_samples(AttemptPurpose::Sample).len();
        let warm_ups = (sampling.warm_up as usize).saturating_sub(self.finished_samples(AttemptPurpose::WarmUp).len());
        let seconds: Vec<f64> = self.evaluated.iter().map(|evaluated| evaluated.attempt.ended.seconds).collect();
        let each = if seconds.is_empty() {
            self.planned.estimate.seconds()
        } else {
            seconds.iter().sum::<f64>() / seconds.len() as f64
        };
        let calibration = if seconds.is_empty() { self.planned.calibration_time.seconds() } else { 0.0 };
        calibration + each * required.saturating_sub(taken).max(1).saturating_add(warm_ups) as f64
    }

    /// Returns why the values of the newest attempt are invalid, if it completed.
    pub fn last_invalid_reason(&self) -> Option<String> {
        match &self.evaluated.last()?.measurement.as_ref()?.validity {
            Validity::Valid => None,
            invalid @ Validity::Invalid { .. } => Some(invalid.to_string()),
        }
    }
}
