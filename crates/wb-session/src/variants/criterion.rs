//! The criterion of a comparison (metric, direction, threshold, error rate), and the samples that it applies to.

use std::collections::BTreeSet;

use wb_compare::experiment::attempt_rounds;
use wb_compare::sequential_test::VariantAttempts;
use wb_model::{AttemptOutcome, AttemptPurpose, Metric, MetricKey, Validity};
use wb_plan::{Cell, Plan, Sampling};
use wb_results::comparison::{AttemptCounts, NegligibleRatios};
use wb_results::experiment::{ComparedMetric, Criterion};
use wb_results::{AttemptResult, CellResult};

use super::VariantsError;
use crate::request::MeasureRequest;

/// Builds the criterion for the cells of a plan, all of one test.
pub(super) fn build_criterion(
    request: &MeasureRequest,
    plan: &Plan,
    threshold: f64,
    error_rate: f64,
) -> Result<Criterion, VariantsError> {
    let metrics = plan.cells.first().map(|cell| primary_metrics(request, cell)).unwrap_or_default();
    let first = metrics.first().ok_or_else(|| VariantsError::NoPrimaryMetric(request.name.clone()))?;
    Ok(Criterion {
        test: request.name.clone(),
        metric: first.metric.clone(),
        // Every primary metric decides, which is what the cases have.
        other_metrics: Vec::new(),
        unit: first.unit.clone(),
        direction: first.direction,
        threshold,
        negligible: Some(NegligibleRatios::new(threshold)),
        error_rate,
    })
}

/// The primary metrics of a cell; a plan can have chosen them.
pub(super) fn primary_metrics(request: &MeasureRequest, cell: &Cell) -> Vec<ComparedMetric> {
    let test_cell = request.registry.test_cell(cell.id.test.as_str(), &cell.params);
    let metrics = test_cell.map(|test_cell| cell.criteria.apply(test_cell.metrics())).unwrap_or_default();
    let compared = |metric: &Metric| ComparedMetric {
        metric: metric.key(),
        unit: metric.unit.clone(),
        direction: metric.direction,
    };
    metrics.iter().filter(|metric| metric.primary).map(compared).collect()
}

/// Whether an attempt takes the turn of its cell in a round.
pub(super) fn takes_turn(purpose: AttemptPurpose, outcome: &AttemptOutcome) -> bool {
    purpose == AttemptPurpose::Sample && *outcome != AttemptOutcome::Cancelled
}

/// The attempts of a cell at samples, each with its round.
fn samples_by_round(cell: &CellResult) -> impl Iterator<Item = (u32, &AttemptResult)> {
    let turns = cell.attempts.iter().map(|attempt| takes_turn(attempt.purpose, &attempt.outcome));
    attempt_rounds(turns).zip(&cell.attempts).filter(|(_, attempt)| attempt.purpose == AttemptPurpose::Sample)
}

/// The values of the counted samples of a cell, with their rounds.
pub(super) fn counted_values(cell: &CellResult, metric: &MetricKey) -> Vec<(u32, f64)> {
    let counted = samples_by_round(cell).filter(|(_, sample)| sample.counted);
    counted.filter_map(|(round, sample)| Some((round, *sample.values.get(metric)?))).collect()
}

/// The rounds of all measured samples of a cell, whether counted or not.
pub(super) fn measured_rounds(cell: &CellResult) -> BTreeSet<u32> {
    let measured = samples_by_round(cell).filter(|(_, sample)| sample.outcome.is_completed());
    measured.map(|(round, _)| round).collect()
}

/// The attempts of a cell in the rounds in which it had its turn.
pub(super) fn round_attempts<'a>(
    attempts: impl Iterator<Item = (AttemptPurpose, &'a AttemptOutcome)> + Clone,
) -> VariantAttempts {
    let turns = attempts.clone().filter(|(purpose, outcome)| takes_turn(*purpose, outcome));
    let warm_ups = attempts.filter(|(purpose, _)| *purpose == AttemptPurpose::WarmUp);
    VariantAttempts {
        warm_ups: count_warm_ups(warm_ups.map(|(_, outcome)| outcome)),
        ..VariantAttempts::of_rounds(turns.map(|(_, outcome)| !outcome.is_completed()))
    }
}

/// Counts attempts at warm-ups. One that the user ended is repeated.
fn count_warm_ups<'a>(outcomes: impl Iterator<Item = &'a AttemptOutcome>) -> AttemptCounts {
    let ended = outcomes.filter(|outcome| **outcome != AttemptOutcome::Cancelled);
    let one = |outcome: &AttemptOutcome| AttemptCounts { failed: u32::from(!outcome.is_completed()), attempts: 1 };
    ended.map(one).fold(AttemptCounts::default(), std::ops::Add::add)
}

/// Whether as many of the last attempts of a cell had no valid values as it may make in a row, or it was refused.
pub(super) fn makes_no_more(cell: &CellResult, sampling: &Sampling) -> bool {
    let mut last = cell.attempts.iter().rev().peekable();
    let is_refused = last.peek().is_some_and(|last| matches!(last.outcome, AttemptOutcome::Refused { .. }));
    let in_a_row = last.take_while(|attempt| attempt.validity != Some(Validity::Valid)).count();
    is_refused || in_a_row as u32 >= sampling.attempts
}

/// The number of counted samples with a value of a metric that were disturbed from outside the workload.
pub(super) fn disturbed_count(cell: &CellResult, metrics: &[ComparedMetric]) -> usize {
    let is_compared = |sample: &&AttemptResult| metrics.iter().any(|it| sample.values.contains_key(&it.metric));
    let counted = cell.attempts.iter().filter(|sample| sample.counted).filter(is_compared);
    counted.filter(|sample| !sample.disturbances.is_empty()).count()
}
