//! Summaries of latencies: mean, percentiles, and the full histogram.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::hdr;
use crate::engine::latency::LatencyHistogram;

/// Whether so many rounds are pending, more than a hundredth, that the latencies must be read with their number. Every
/// window interrupts some.
pub(super) fn is_notable_share(pending: u64, all: u64) -> bool {
    pending > all / 100
}

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

/// The value at a quantile, limited to the recorded range: the bounds of a bucket can lie outside of it.
pub(super) fn quantile(times: &LatencyHistogram, histogram: &Histogram<u32>, quantile: f64) -> u64 {
    histogram.value_at_quantile(quantile).min(times.max).max(times.min)
}

impl LatencySummary {
    /// Summarizes the latencies of completed rounds, if there are any, and of pending rounds, which took at least these
    /// times. The minimum is taken from completed rounds only.
    pub(super) fn with_pending<'a>(
        times: &LatencyHistogram,
        pending: impl IntoIterator<Item = &'a LatencyHistogram>,
    ) -> Option<Self> {
        let ended = times.count();
        let mut all = times.clone();
        pending.into_iter().for_each(|pending| all.merge(pending));
        all.min = times.min;
        let summary = Self::from_histogram(&all).filter(|_| ended > 0)?;
        Some(Self { pending: summary.count - ended, ..summary })
    }

    /// Whether a quantile is a lower bound: all pending rounds may be above it, and there are notably many.
    pub fn is_at_least(&self, quantile: f64) -> bool {
        let share = self.pending as f64 / self.count as f64;
        is_notable_share(self.pending, self.count) && share > 1.0 - quantile
    }

    pub(crate) fn from_histogram(times: &LatencyHistogram) -> Option<Self> {
        let histogram = times.to_hdr();
        let count = histogram.len();
        if count == 0 {
            return None;
        }
        let at = |q| quantile(times, &histogram, q);
        let percentiles = Percentiles {
            min_ns: times.min,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p99_9_ns: at(0.999),
            p99_99_ns: at(0.9999),
            max_ns: times.max,
        };
        let mean_ns = times.sum as f64 / count as f64;
        Some(Self { count, pending: 0, mean_ns, percentiles, histogram: hdr::encode(&histogram).ok()? })
    }

    /// The recorded latencies in ascending order: the median of each bucket in nanoseconds, and its count. The
    /// histogram may come from a file; an invalid one is an error.
    pub fn buckets(&self) -> Result<Vec<(u64, u64)>, String> {
        let histogram = hdr::decode(&self.histogram)?;
        let recorded = histogram.iter_recorded();
        Ok(recorded
            .map(|time| (histogram.median_equivalent(time.value_iterated_to()), time.count_at_value().into()))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_can_be_read_from_a_summary() {
        let mut histogram = LatencyHistogram::new(3);
        [100, 200, 200, 1_000_000].into_iter().for_each(|time| histogram.record(time));
        let summary = LatencySummary::from_histogram(&histogram).expect("there are times");
        let counts = summary.buckets().expect("it is a histogram");
        assert_eq!(counts[..2], [(100, 1), (200, 2)]);
        assert!(counts[2].0.abs_diff(1_000_000) < 1000, "{counts:?}");
        assert!(LatencySummary { histogram: "rubbish".to_owned(), ..summary }.buckets().is_err());
    }
}
