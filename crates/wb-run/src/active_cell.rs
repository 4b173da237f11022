//! A cell while it is being measured.

use std::collections::BTreeSet;
use std::sync::Arc;

use wb_model::{AttemptOutcome, AttemptSetup, Nanos, Params, Placement, Purpose, Validity, WorkerName, pluralize};
use wb_plan::{Cell, Plan, Sampling, TimeEstimate};
use wb_record::CellDefinition;
use wb_stats::{Budget, SamplingDecision, SamplingRule};
use wb_study::{StudiedAttempt, judge};
use wb_tests::test::{requested_placement, requested_surroundings};
use wb_tests::{BUILT_PREFIX, Test};

use crate::role_sample::PreparedSite;

/// A cell while it is being measured.
pub struct ActiveCell {
    /// As the plan has it.
    pub cell: Cell,
    /// As it is recorded.
    pub definition: CellDefinition,
    /// Its test.
    pub test: Arc<dyn Test>,
    /// Where and how its processes run.
    pub placement: Placement,
    /// What they find around them.
    pub surroundings: AttemptSetup,
    /// Every attempt until now, earlier entries' included.
    pub studied: Vec<StudiedAttempt>,
    /// What each of its teams prepared for all its samples, and where that lives.
    pub(crate) prepared: Vec<PreparedSite>,
    /// Attempts in this entry.
    attempts_in_entry: u32,
}

/// What a cell wants next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// An attempt for this purpose at the sample of this number.
    Attempt(Purpose, u32),
    /// Nothing, because of this.
    Finish(String),
}

impl ActiveCell {
    /// A cell with the attempts that were made at it before.
    pub fn new(
        cell: Cell,
        definition: CellDefinition,
        test: Arc<dyn Test>,
        studied: Vec<StudiedAttempt>,
    ) -> Result<Self, String> {
        let (placement, surroundings) = (requested_placement(&cell.params)?, requested_surroundings(&cell.params)?);
        Ok(Self {
            cell,
            definition,
            test,
            placement,
            surroundings,
            studied,
            prepared: Vec::new(),
            attempts_in_entry: 0,
        })
    }

    /// Its effective parameters.
    pub fn params(&self) -> &Params {
        &self.cell.params
    }

    /// The work that its samples do on a worker: what the newest finished attempt did.
    pub(crate) fn work(&self, worker: &WorkerName) -> Option<u64> {
        let finished = self.studied.iter().rev().filter(|studied| studied.attempt.is_finished());
        finished.map(|studied| &studied.attempt.ended).find_map(|ended| match ended.workers.len() {
            0 => ended.work,
            _ => ended.work_by_worker.get(worker).copied(),
        })
    }

    /// Whether the work of its samples is settled.
    pub fn is_calibrated(&self) -> bool {
        self.cell.teams.iter().any(|team| self.work(&team.worker).is_some())
    }

    /// Whether any attempt at it ran to its end.
    pub fn has_finished(&self) -> bool {
        self.studied.iter().any(|studied| studied.attempt.is_finished())
    }

    /// Whether its samples were taken with programs that its test built.
    pub fn uses_built_programs(&self) -> bool {
        let measured = self.studied.iter().filter_map(|studied| studied.measurement.as_ref());
        measured.flat_map(|measured| measured.provenance.keys()).any(|name| name.starts_with(BUILT_PREFIX))
    }

    /// One more attempt has ended.
    pub fn add(&mut self, studied: StudiedAttempt) {
        self.studied.push(studied);
        self.attempts_in_entry += 1;
    }

    /// What it wants next.
    pub fn next(&self, sampling: &Sampling) -> NextStep {
        if let Some(by) = self.end_reason(sampling) {
            return NextStep::Finish(by);
        }
        if (self.finished_samples(Purpose::WarmUp).len() as u32) < sampling.warm_up {
            return NextStep::Attempt(Purpose::WarmUp, self.next_sample_number(Purpose::WarmUp));
        }
        NextStep::Attempt(Purpose::Sample, self.next_sample_number(Purpose::Sample))
    }

    /// The numbers of the samples for a purpose with an attempt that ran to its end and is whole.
    fn finished_samples(&self, purpose: Purpose) -> BTreeSet<u32> {
        let of_purpose = self.studied.iter().filter(|studied| studied.attempt.ended.purpose == purpose);
        of_purpose.filter(|studied| studied.attempt.is_finished()).map(|s| s.attempt.ended.sample).collect()
    }

    /// The first sample for a purpose that has no such attempt.
    fn next_sample_number(&self, purpose: Purpose) -> u32 {
        let finished = self.finished_samples(purpose);
        (0..).find(|number| !finished.contains(number)).unwrap_or_default()
    }

    /// What ended it, if anything did.
    fn end_reason(&self, sampling: &Sampling) -> Option<String> {
        if let Some(reason) = &self.cell.unsupported {
            return Some(format!("unsupported: {reason}"));
        }
        let judgement = judge(&self.definition, &self.studied, Budget::Left);
        if let Some(contradiction) = judgement.contradiction {
            return Some(format!("its values contradict each other: {contradiction}"));
        }
        match judgement.decision {
            SamplingDecision::Done(_) => return Some("its rule is met".to_owned()),
            SamplingDecision::NotConverged(_) => return Some("its sample limit is reached".to_owned()),
            SamplingDecision::Continue => {}
        }
        let this_entry = &self.studied[self.studied.len().saturating_sub(self.attempts_in_entry as usize)..];
        if let Some(refused) = this_entry.last().and_then(|studied| match &studied.attempt.ended.outcome {
            AttemptOutcome::Refused { reason } => Some(reason),
            _ => None,
        }) {
            return Some(format!("refused: {refused}"));
        }
        let in_vain = this_entry.iter().rev().take_while(|studied| studied.valid().is_none()).count() as u32;
        if in_vain >= sampling.attempts {
            let last = this_entry.last().map(StudiedAttempt::reason).unwrap_or_default();
            let tries = pluralize(in_vain as usize, "attempt");
            return Some(format!("given up after {tries} in vain, the last one {last}"));
        }
        let seconds: f64 = self.studied.iter().map(|studied| studied.attempt.ended.seconds).sum();
        let valid = self.studied.iter().filter(|studied| studied.valid_sample().is_some()).count();
        let enough = valid >= self.definition.rule.min_samples();
        // What is compared ends when it is decided, unless a time was asked for.
        let patient = matches!(self.definition.rule, SamplingRule::External { .. });
        let budget = sampling.budget(enough && !patient).filter(|budget| seconds >= budget.seconds())?;
        Some(format!("its time budget of {budget} is spent"))
    }

    /// How long it still takes, about: with as few samples as its rule can be met with, and with as many as it takes.
    pub fn duration_left(&self, plan: &Plan) -> TimeEstimate {
        if self.studied.is_empty() {
            return if self.end_reason(&plan.sampling).is_some() {
                TimeEstimate::default()
            } else {
                plan.cell_duration(&self.cell)
            };
        }
        let least = self.seconds_left(&plan.sampling);
        if least == 0.0 {
            return TimeEstimate::default();
        }
        let seconds: f64 = self.studied.iter().map(|studied| studied.attempt.ended.seconds).sum();
        let rule = &self.definition.rule;
        let more =
            rule.max_samples().saturating_sub(self.finished_samples(Purpose::Sample).len().max(rule.min_samples()));
        let most = least + seconds / self.studied.len() as f64 * more as f64;
        let is_compared = matches!(rule, SamplingRule::External { .. });
        let budget = plan.sampling.budget(!is_compared).map_or(f64::INFINITY, |budget| budget.seconds() - seconds);
        let nanos = |seconds: f64| Nanos((seconds * 1e9) as u64);
        TimeEstimate { min: nanos(least), max: nanos(most.min(budget).max(least)) }
    }

    /// How long it still takes, about, in seconds.
    pub fn seconds_left(&self, sampling: &Sampling) -> f64 {
        if self.end_reason(sampling).is_some() {
            return 0.0;
        }
        let wanted = self.definition.rule.min_samples() as u32;
        let taken = self.finished_samples(Purpose::Sample).len() as u32;
        let warm_ups = sampling.warm_up.saturating_sub(self.finished_samples(Purpose::WarmUp).len() as u32);
        let seconds: Vec<f64> = self.studied.iter().map(|studied| studied.attempt.ended.seconds).collect();
        let each = if seconds.is_empty() {
            self.cell.estimate.seconds()
        } else {
            seconds.iter().sum::<f64>() / seconds.len() as f64
        };
        let calibration = if seconds.is_empty() { self.cell.calibration_time.seconds() } else { 0.0 };
        calibration + each * f64::from(warm_ups + wanted.saturating_sub(taken).max(1))
    }

    /// Why the newest attempt's values do not count, if it completed.
    pub fn last_invalid_reason(&self) -> Option<String> {
        match &self.studied.last()?.measurement.as_ref()?.validity {
            Validity::Valid => None,
            invalid @ Validity::Invalid { .. } => Some(invalid.to_string()),
        }
    }
}
