//! What decides about a cell, where a plan does not leave it to the test.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Metric, MetricKey};

/// The largest threshold in percent: of a difference that is larger, nobody needs a test to know that it matters.
pub const MAX_THRESHOLD_PERCENT: f64 = 1000.0;

/// What a plan has decide about a cell. It changes nothing of what is measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Criteria {
    /// The primary metrics, in place of those that the test declares; empty: those of the test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricKey>,
    /// The smallest differences that matter in comparisons, in percent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thresholds: BTreeMap<MetricKey, f64>,
}

impl Criteria {
    pub fn is_empty(&self) -> bool {
        self.metrics.is_empty() && self.thresholds.is_empty()
    }

    /// The metrics of a test with these primary ones, which come first.
    pub fn apply(&self, mut metrics: Vec<Metric>) -> Vec<Metric> {
        if self.metrics.is_empty() {
            return metrics;
        }
        let position = |metric: &Metric| self.metrics.iter().position(|key| *key == metric.key());
        for metric in &mut metrics {
            metric.primary = position(metric).is_some();
        }
        metrics.sort_by_key(|metric| position(metric).unwrap_or(self.metrics.len()));
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_metrics_are_primary_and_first_in_the_given_order() {
        let metrics = || {
            vec![Metric::throughput("iops", "1/s").primary(), Metric::latency("mean", "s"), Metric::latency("p99", "s")]
        };
        let chosen = |keys: &[&str]| {
            let metrics_of = keys.iter().map(|key| key.parse().unwrap()).collect();
            let applied = Criteria { metrics: metrics_of, ..Criteria::default() }.apply(metrics());
            applied.iter().map(|metric| (metric.name.clone(), metric.primary)).collect::<Vec<_>>()
        };
        let all = |all: [(&str, bool); 3]| all.map(|(name, primary)| (name.to_owned(), primary));
        assert_eq!(chosen(&[]), all([("iops", true), ("mean", false), ("p99", false)]));
        assert_eq!(chosen(&["latency/p99", "throughput/iops"]), all([("p99", true), ("iops", true), ("mean", false)]));
        assert_eq!(chosen(&["latency/mean"]), all([("mean", true), ("iops", false), ("p99", false)]));
    }
}
