//! The primary metrics that the plans of the runs have.

use wb_model::pluralize;
use wb_results::comparison::Statistic;

use crate::build::{Builds, MetricIndex};

/// A note if a metric of a cell that both sides have is primary in one of them only.
pub(super) fn differences(builds: &Builds) -> Option<String> {
    let [reference, .., judged] = builds.list() else { return None };
    let differs = |row: &MetricIndex| match (reference.primary(*row), judged.primary(*row)) {
        (Some(reference), Some(judged)) => reference != judged,
        _ => false,
    };
    let differing: Vec<MetricIndex> = builds.rows().filter(differs).collect();
    let first = *differing.first()?;
    let of = if reference.primary(first) == Some(true) { reference } else { judged };
    Some(format!(
        "the builds have different primary metrics: {} of one build only, which decide all the same, such as `{}` of `{}`",
        pluralize(differing.len(), "metric"),
        builds.id(first, Statistic::Mean),
        of.name,
    ))
}
