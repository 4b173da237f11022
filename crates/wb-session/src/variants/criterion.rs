//! The criterion of a comparison (metric, direction, threshold, error rate), and the samples that it applies to.

use std::collections::BTreeSet;

use wb_compare::experiment::Criterion;
use wb_model::{Class, Metric};
use wb_plan::{Cell, Plan};
use wb_study::result::{AttemptResult, CellResult, Purpose};

use super::VariantsError;
use crate::request::MeasureRequest;

/// Builds the criterion for the cells of a plan, all of one test.
pub(super) fn build_criterion(
    request: &MeasureRequest,
    plan: &Plan,
    threshold: f64,
    error_rate: f64,
) -> Result<Criterion, VariantsError> {
    let cell = plan.cells.first();
    let metrics = cell.map(|cell| primary_metrics(request, cell)).unwrap_or_default();
    let metric = decisive_metric(&metrics).ok_or_else(|| VariantsError::NoPrimaryMetric(request.name.clone()))?;
    let others = metrics.iter().filter(|other| is_candidate(other) && other.key() != metric.key());
    Ok(Criterion {
        test: request.name.clone(),
        metric: metric.key(),
        other_metrics: others.map(Metric::key).collect(),
        unit: metric.unit.clone(),
        direction: metric.direction,
        threshold,
        error_rate,
    })
}

/// The metrics of a cell, of which those that the plan chose are primary.
fn primary_metrics(request: &MeasureRequest, cell: &Cell) -> Vec<Metric> {
    let test_cell = request.registry.test_cell(cell.id.test.as_str(), &cell.params);
    test_cell.map(|test_cell| cell.criteria.apply(test_cell.metrics())).unwrap_or_default()
}

/// The metric by which variants are compared: the first primary one that measures performance.
pub(super) fn decisive_metric(metrics: &[Metric]) -> Option<&Metric> {
    metrics.iter().find(|metric| is_candidate(metric))
}

/// Whether a metric is primary and measures performance.
fn is_candidate(metric: &Metric) -> bool {
    metric.primary && metric.class != Class::Check
}

/// The values of the counted samples of a cell, with their sample numbers.
pub(super) fn counted_values(cell: &CellResult, criterion: &Criterion) -> Vec<(u32, f64)> {
    counted_samples(cell, criterion)
        .filter_map(|sample| Some((sample.sample, *sample.values.get(&criterion.metric)?)))
        .collect()
}

/// The numbers of all measured samples of a cell, whether counted or not.
pub(super) fn sample_numbers(cell: &CellResult) -> BTreeSet<u32> {
    let measured = |sample: &&AttemptResult| sample.purpose == Purpose::Sample && sample.outcome.is_completed();
    cell.attempts.iter().filter(measured).map(|sample| sample.sample).collect()
}

/// The number of counted samples that were disturbed from outside the workload.
pub(super) fn disturbed_count(cell: &CellResult, criterion: &Criterion) -> usize {
    counted_samples(cell, criterion).filter(|sample| !sample.disturbances.is_empty()).count()
}

fn counted_samples<'a>(cell: &'a CellResult, criterion: &'a Criterion) -> impl Iterator<Item = &'a AttemptResult> {
    cell.attempts.iter().filter(|sample| sample.counted && sample.values.contains_key(&criterion.metric))
}
