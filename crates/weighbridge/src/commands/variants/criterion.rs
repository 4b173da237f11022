//! What is asked of a test, and the samples that answer it.

use std::collections::BTreeSet;

use wb_compare::experiment::Criterion;
use wb_model::{Class, Metric, Params};
use wb_plan::Plan;
use wb_study::result::{CellResult, Purpose, SampleResult};

use crate::commands::selection::MeasureRequest;
use crate::error::Error;

/// What is asked of the cells of a plan, all of one test.
pub(super) fn build_criterion(
    asked: &MeasureRequest,
    plan: &Plan,
    threshold: f64,
    error_rate: f64,
) -> Result<Criterion, Error> {
    let cell = plan.cells.first();
    let metric = cell.and_then(|cell| primary_metric(asked, cell.id.test.as_str(), &cell.params)).ok_or_else(|| {
        let (what, help) = (format!("`{}` has no primary metric", asked.name), "another test has one".to_owned());
        Error::Usage { what, help }
    })?;
    Ok(Criterion {
        test: asked.name.clone(),
        metric: format!("{}/{}", metric.class, metric.name),
        unit: metric.unit,
        direction: metric.direction,
        threshold,
        error_rate,
    })
}

fn primary_metric(asked: &MeasureRequest, test: &str, params: &Params) -> Option<Metric> {
    let metrics = asked.registry.test(test)?.metrics(params);
    metrics.into_iter().find(|metric| metric.primary && metric.class != Class::Check)
}

/// The samples of a cell that count, by their numbers.
pub(super) fn counted_values(cell: &CellResult, question: &Criterion) -> Vec<(u32, f64)> {
    counted_samples(cell, question)
        .filter_map(|sample| Some((sample.sample, *sample.values.get(&question.metric)?)))
        .collect()
}

/// The numbers of all samples of a cell that were measured, whether they count or not.
pub(super) fn sample_numbers(cell: &CellResult) -> BTreeSet<u32> {
    let measured = |sample: &&SampleResult| sample.purpose == Purpose::Sample && sample.outcome.is_completed();
    cell.samples.iter().filter(measured).map(|sample| sample.sample).collect()
}

/// How many of these samples something outside the workload disturbed.
pub(super) fn disturbed_count(cell: &CellResult, question: &Criterion) -> usize {
    counted_samples(cell, question).filter(|sample| !sample.disturbances.is_empty()).count()
}

fn counted_samples<'a>(cell: &'a CellResult, question: &'a Criterion) -> impl Iterator<Item = &'a SampleResult> {
    cell.samples.iter().filter(|sample| sample.counted && sample.values.contains_key(&question.metric))
}
