//! Summaries of latencies: mean, percentiles, and the full histogram.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::histogram;
use super::rounds::is_notable_share;

/// A summary of latencies, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LatencySummary {
    /// Number of values.
    pub count: u64,
    /// Number of those that are lower bounds: of rounds that had not ended at the end of the window.
    #[serde(default)]
    pub pending: u64,
    /// The exact mean.
    pub mean_ns: f64,
    /// Percentiles.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// The histogram, in HdrHistogram's V2 encoding and base64.
    pub histogram: String,
}

/// Percentiles of latencies in nanoseconds, to three significant digits, or two where many strands share the memory.
/// Minimum and maximum are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Percentiles {
    /// The minimum.
    pub min_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The 99.9th percentile.
    pub p99_9_ns: u64,
    /// The 99.99th percentile.
    pub p99_99_ns: u64,
    /// The maximum.
    pub max_ns: u64,
}

impl LatencySummary {
    /// Whether a quantile is a lower bound: all pending rounds may be above it, and there are notably many.
    pub fn is_at_least(&self, quantile: f64) -> bool {
        let share = self.pending as f64 / self.count as f64;
        is_notable_share(self.pending, self.count) && share > 1.0 - quantile
    }

    /// The recorded latencies in ascending order: the median of each bucket in nanoseconds, and its count. The
    /// histogram may come from a file; an invalid one is an error.
    pub fn buckets(&self) -> Result<Vec<(u64, u64)>, String> {
        let histogram = histogram::decode(&self.histogram)?;
        let recorded = histogram.iter_recorded();
        Ok(recorded
            .map(|time| (histogram.median_equivalent(time.value_iterated_to()), time.count_at_value().into()))
            .collect())
    }
}
