//! The criterion of a comparison (metric, direction, threshold, error rate), and the samples that it applies to.

use std::collections::BTreeSet;

use wb_compare::experiment::{ComparedMetric, Criterion};
use wb_model::{Metric, MetricKey};
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

/// The values of the counted samples of a cell, with their sample numbers.
pub(super) fn counted_values(cell: &CellResult, metric: &MetricKey) -> Vec<(u32, f64)> {
    let counted = cell.attempts.iter().filter(|sample| sample.counted);
    counted.filter_map(|sample| Some((sample.sample, *sample.values.get(metric)?))).collect()
}

/// The numbers of all measured samples of a cell, whether counted or not.
pub(super) fn sample_numbers(cell: &CellResult) -> BTreeSet<u32> {
    let measured = |sample: &&AttemptResult| sample.purpose == Purpose::Sample && sample.outcome.is_completed();
    cell.attempts.iter().filter(measured).map(|sample| sample.sample).collect()
}

/// The number of counted samples with a value of a metric that were disturbed from outside the workload.
pub(super) fn disturbed_count(cell: &CellResult, metrics: &[ComparedMetric]) -> usize {
    let is_compared = |sample: &&AttemptResult| metrics.iter().any(|it| sample.values.contains_key(&it.metric));
    let counted = cell.attempts.iter().filter(|sample| sample.counted).filter(is_compared);
    counted.filter(|sample| !sample.disturbances.is_empty()).count()
}
