//! The nested latency table: percentiles of I/O latencies within each second, and their distribution over the seconds.
//!
//! A device that stalls in bursts has a high p99 in a few seconds, one with a long tail in all.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Distribution, OverTime, Percentile};

/// A nested latency table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LatencyTable {
    /// The rows, by the percentile within a second.
    pub rows: BTreeMap<Percentile, LatencyRow>,
    /// Seconds in which requests were completed.
    pub seconds: u64,
    /// Seconds without any, which enter no figure.
    pub idle_seconds: u64,
}

/// A percentile of the latencies within a second. All figures are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LatencyRow {
    /// Its distribution over the seconds.
    pub over_time: Distribution,
    /// The same percentile of all requests.
    pub cumulative: f64,
}

impl LatencyTable {
    /// A figure of the table, in nanoseconds.
    pub fn get(&self, percentile: Percentile, column: OverTime) -> Option<f64> {
        let over_time = &self.rows.get(&percentile)?.over_time;
        match column {
            OverTime::Mean => Some(over_time.mean),
            OverTime::Percentile(percentile) => over_time.get(percentile),
        }
    }
}
