//! The nested latency table: percentiles of each interval by itself, and their percentiles over the intervals.
//!
//! It distinguishes a connection that stalls in bursts from one with a long tail.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latency percentiles per interval, and their distribution over the intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NestedLatency {
    /// Number of intervals with rounds.
    pub intervals: usize,
    /// Length of an interval, in seconds.
    pub interval_seconds: f64,
    /// The percentiles over intervals, one per column: from 0 (minimum) to 100 (maximum).
    pub over_intervals: Vec<f64>,
    /// One row per latency percentile.
    pub rows: Vec<NestedRow>,
}

/// One row of the nested latency table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NestedRow {
    /// The latency percentile.
    pub percentile: f64,
    /// Its value over all rounds, in nanoseconds.
    pub cumulative_ns: u64,
    /// Its percentiles over intervals, one per column, in nanoseconds.
    pub over_intervals_ns: Vec<u64>,
}
