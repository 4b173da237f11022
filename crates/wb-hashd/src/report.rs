//! What is reported once a period.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of one period; one line of JSON
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HashdReport {
    /// End of the period, in seconds since the first request could start
    pub time: f64,
    /// End of the period, in seconds since the epoch
    pub unix_time: f64,
    /// Length of the period, in seconds
    pub period: f64,
    /// Requests completed in the period
    pub completed: u64,
    /// Requests completed since the start
    pub done: u64,
    /// Requests completed per second
    pub rps: f64,
    /// How often the parameters have changed since the start
    pub changes: u64,
    /// Requests per second to reach; absent without a target
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rps_target: Option<f64>,
    /// Mean number of requests in flight from now on; absent in the open loop
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<f64>,
    /// Maximum of the concurrency that the latency permits; absent in the open loop
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_limit: Option<f64>,
    /// Requests in flight at the end of the period
    pub in_flight: u64,
    /// Threads that execute requests, idle ones included
    pub workers: u64,
    /// Latency of the requests completed in the period; absent if there were none. In the open loop, response time from
    /// the intended start
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyQuantiles>,
    /// Footprint of files, in bytes
    pub file_bytes: u64,
    /// Part of it that requests use at this rate
    pub file_addr_frac: f64,
    /// Footprint of anonymous memory, in bytes
    pub anon_bytes: u64,
    /// Part of it that requests use at this rate
    pub anon_addr_frac: f64,
    /// Resident memory of the process, in bytes: anonymous memory that was touched, and its own
    pub resident_bytes: u64,
    /// Whether what was added to the footprint is still being filled
    pub is_filling: bool,
    /// Requests of the schedule whose time has come and that have not started; always 0 in the closed loop
    pub backlog: u64,
    /// Requests of the schedule given up since the start because too many waited
    pub dropped: u64,
    /// Errors since the start; a request that failed is not completed
    pub errors: u64,
    /// The last error
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// CPU time in the period
    pub cpu: CpuTimes,
}

/// Latencies in seconds
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LatencyQuantiles {
    /// Minimum
    pub min: f64,
    /// Median
    pub p50: f64,
    /// Quantile 0.9
    pub p90: f64,
    /// Quantile 0.95
    pub p95: f64,
    /// Quantile 0.99
    pub p99: f64,
    /// Quantile 0.999
    pub p999: f64,
    /// Maximum
    pub max: f64,
    /// The quantile that is controlled (`lat-quantile`)
    pub control: f64,
}

impl LatencyQuantiles {
    /// `histogram` is in microseconds; `None` if it is empty.
    pub(crate) fn new(histogram: &Histogram<u32>, control: f64) -> Option<Self> {
        if histogram.is_empty() {
            return None;
        }
        let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e6;
        Some(Self {
            min: histogram.min() as f64 / 1e6,
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1e6,
            control: at(control),
        })
    }
}

/// CPU times in seconds, by what they were spent for
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CpuTimes {
    /// Reading files
    pub read: f64,
    /// Touching anonymous memory
    pub touch: f64,
    /// Hashing
    pub hash: f64,
    /// Falling asleep and waking up, and what is between two requests of a thread
    pub sleep: f64,
    /// Writing the log
    pub log: f64,
    /// Everything else that the process does; a stage in progress at an edge of the period can make it negative
    pub other: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::empty_histogram;

    #[test]
    fn quantiles_are_in_seconds_and_absent_without_requests() {
        let mut histogram = empty_histogram();
        assert_eq!(LatencyQuantiles::new(&histogram, 0.95), None);
        (1..=100).for_each(|milliseconds| histogram.saturating_record(milliseconds * 1000));
        let near = |actual: f64, expected: f64| assert!((actual / expected - 1.0).abs() < 0.011, "{actual} {expected}");
        let Some(quantiles) = LatencyQuantiles::new(&histogram, 0.8) else { unreachable!("it is not empty") };
        near(quantiles.p50, 0.05);
        near(quantiles.p95, 0.095);
        near(quantiles.control, 0.08);
        near(quantiles.max, 0.1);
    }
}
