//! The metrics that decide about the cells of a plan, and their thresholds.

use std::collections::BTreeSet;
use std::fmt;

use wb_model::{Criteria, MetricKey};
use wb_plan::{Catalog, Cell, Plan};

/// The metrics that decide about cells of a test, if a plan names them instead of leaving it to the test.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DecidingMetrics {
    /// The test and its serial.
    test: String,
    /// The primary metrics; empty if they depend on parameters that are unresolved.
    primary: Vec<MetricKey>,
    /// Those that the plan has, as text.
    thresholds: Vec<(MetricKey, String)>,
}

impl DecidingMetrics {
    pub(super) fn of_plan(plan: &Plan, catalog: &impl Catalog) -> BTreeSet<Self> {
        let of_cell = |cell: &Cell| {
            let Criteria { metrics, thresholds } = &cell.criteria;
            let all = cell.criteria.apply(catalog.metrics(cell.id.test.as_str(), &cell.params));
            let primary: Vec<MetricKey> =
                all.iter().filter(|metric| metric.primary).map(|metric| metric.key()).collect();
            Self {
                test: format!("{} {}", cell.id.test, cell.id.serial),
                primary: if primary.is_empty() { metrics.clone() } else { primary },
                thresholds: thresholds.iter().map(|(key, percent)| (key.clone(), percent.to_string())).collect(),
            }
        };
        plan.cells.iter().filter(|cell| !cell.criteria.is_empty()).map(of_cell).collect()
    }

    fn warnings(&self) -> impl Iterator<Item = String> {
        let is_ignored = |key: &&MetricKey| !self.primary.is_empty() && !self.primary.contains(key);
        let ignored = self.thresholds.iter().map(|(key, _)| key).filter(is_ignored);
        ignored.map(|key| format!("the threshold of {key} decides nothing in {}: it is not primary", self.test))
    }
}

pub(super) fn warn_of_undecisive_thresholds(deciding: &BTreeSet<DecidingMetrics>) {
    for warning in deciding.iter().flat_map(DecidingMetrics::warnings) {
        crate::console::message!("warning: {warning}");
    }
}

impl fmt::Display for DecidingMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let primary: Vec<String> = self.primary.iter().map(ToString::to_string).collect();
        let primary = (!primary.is_empty()).then(|| primary.join(", "));
        let thresholds = self.thresholds.iter().map(|(key, percent)| format!("threshold of {key} {percent} %"));
        let parts: Vec<String> = primary.into_iter().chain(thresholds).collect();
        write!(f, "{}: {}", self.test, parts.join("; "))
    }
}
