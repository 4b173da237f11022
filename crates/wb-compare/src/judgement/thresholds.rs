//! The smallest relevant differences that the plans of the runs have.

use wb_model::pluralize;
use wb_results::comparison::Statistic;

use crate::build::{Builds, MetricIndex};
use crate::statistical::Threshold;

/// A note if the plans of the compared runs have different thresholds for a metric.
pub(super) fn differences(threshold: Threshold, builds: &Builds) -> Option<String> {
    let [reference, .., judged] = builds.list() else { return None };
    let planned = |row: MetricIndex| {
        let readings = || [reference, judged].into_iter().flat_map(move |build| build.readings(row));
        let first = readings().next()?.threshold;
        readings().any(|reading| reading.threshold != first).then_some(row)
    };
    let differing: Vec<MetricIndex> =
        if threshold == Threshold::FromPlans { builds.rows().filter_map(planned).collect() } else { Vec::new() };
    let first = *differing.first()?;
    let (of, percent) = match (reference.threshold(first), judged.threshold(first)) {
        (Some(percent), _) => (reference, percent),
        (None, Some(percent)) => (judged, percent),
        // Readings without a threshold are equal.
        (None, None) => return None,
    };
    Some(format!(
        "the plans of the runs have different thresholds for {}: those of the reference apply where it has one; `{}` is \
         compared with {percent} %, of `{}`",
        pluralize(differing.len(), "metric"),
        builds.id(first, Statistic::Mean),
        of.name,
    ))
}
