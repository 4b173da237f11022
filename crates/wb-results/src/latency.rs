//! Latency percentiles over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CurveSet;

/// How latency percentiles vary over time. Each row takes a percentile of the operations of every second, such as the
/// p99 of each second, and has the distribution of these values over the seconds. A device that stalls in bursts has a
/// high p99 in only some of the seconds; one with a long tail has it in all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NestedLatency {
    /// The kind of operation: `read completion`.
    pub title: String,
    /// The columns: percentile ranks of the per-second values, from 0 (the smallest value) to 100 (the largest).
    pub over_seconds: Vec<f64>,
    /// The rows, one for each latency percentile.
    pub rows: Vec<NestedRow>,
    /// Percentiles over the time within a sample: medians over the samples. Absent in results of earlier versions, and of
    /// samples with a single interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<CurveSet>,
}

/// One latency percentile: over the whole time, and its distribution over the seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NestedRow {
    /// Which percentile it is: 99 for p99.
    pub percentile: f64,
    /// Its value over all operations of all seconds, in nanoseconds.
    pub cumulative_ns: f64,
    /// The distribution of its values in each second, in nanoseconds: one percentile for each column.
    pub over_seconds_ns: Vec<f64>,
}
