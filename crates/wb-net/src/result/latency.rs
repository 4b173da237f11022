//! Times as people read them: a mean, quantiles, and the histogram for whoever wants more.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{hdr, latency::LatencyHistogram};

/// How long something took, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LatencySummary {
    /// How often.
    pub count: u64,
    /// On average, exactly.
    pub mean_ns: f64,
    /// The quantiles.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// All, as an HdrHistogram in V2 encoding and base64.
    pub histogram: String,
}

/// Quantiles of times, in nanoseconds: to three significant digits, two where many strands share the memory. The
/// shortest and the longest are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Percentiles {
    /// The shortest.
    pub min_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// 90 % are shorter.
    pub p90_ns: u64,
    /// 99 % are shorter.
    pub p99_ns: u64,
    /// 99.9 % are shorter.
    pub p99_9_ns: u64,
    /// 99.99 % are shorter.
    pub p99_99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// The value at a quantile of a histogram of these times. A bucket's ends can lie beyond what was ever recorded.
pub(super) fn quantile(times: &LatencyHistogram, histogram: &Histogram<u32>, quantile: f64) -> u64 {
    histogram.value_at_quantile(quantile).min(times.max).max(times.min)
}

impl LatencySummary {
    /// Of times, if there are any.
    pub(super) fn from_histogram(times: &LatencyHistogram) -> Option<Self> {
        let histogram = times.to_hdr();
        let count = histogram.len();
        if count == 0 {
            return None;
        }
        let at = |wanted| quantile(times, &histogram, wanted);
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
        Some(Self { count, mean_ns, percentiles, histogram: hdr::encode(&histogram).ok()? })
    }

    /// How often each time was taken, times ascending: in nanoseconds, each the middle of those that are not told
    /// apart. The histogram may come from a file; what is none is told.
    pub fn buckets(&self) -> Result<Vec<(u64, u64)>, String> {
        let histogram = hdr::decode(&self.histogram)?;
        let taken = histogram.iter_recorded();
        Ok(taken
            .map(|time| (histogram.median_equivalent(time.value_iterated_to()), time.count_at_value().into()))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_can_be_counted_from_what_is_told_of_them() {
        let mut times = LatencyHistogram::new(3);
        [100, 200, 200, 1_000_000].into_iter().for_each(|time| times.record(time));
        let told = LatencySummary::from_histogram(&times).expect("there are times");
        let counts = told.buckets().expect("it is a histogram");
        assert_eq!(counts[..2], [(100, 1), (200, 2)]);
        assert!(counts[2].0.abs_diff(1_000_000) < 1000, "{counts:?}");
        assert!(LatencySummary { histogram: "rubbish".to_owned(), ..told }.buckets().is_err());
    }
}
