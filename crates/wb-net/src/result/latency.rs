//! Summaries of recorded latencies.

use hdrhistogram::Histogram;
use wb_results::net::{LatencySummary, Percentiles, histogram};

use crate::engine::latency::LatencyHistogram;

/// The value at a quantile, limited to the recorded range: the bounds of a bucket can lie outside of it.
pub(super) fn quantile(times: &LatencyHistogram, histogram: &Histogram<u32>, quantile: f64) -> u64 {
    histogram.value_at_quantile(quantile).min(times.max).max(times.min)
}

/// Summarizes the latencies of completed rounds, if there are any, and of pending rounds, which took at least these
/// times. The minimum is taken from completed rounds only.
pub(super) fn summarize_with_pending<'a>(
    times: &LatencyHistogram,
    pending: impl IntoIterator<Item = &'a LatencyHistogram>,
) -> Option<LatencySummary> {
    let ended = times.count();
    let mut all = times.clone();
    pending.into_iter().for_each(|pending| all.merge(pending));
    all.min = times.min;
    let summary = summarize(&all).filter(|_| ended > 0)?;
    Some(LatencySummary { pending: summary.count - ended, ..summary })
}

pub(super) fn summarize(times: &LatencyHistogram) -> Option<LatencySummary> {
    let buckets = times.to_hdr();
    let count = buckets.len();
    if count == 0 {
        return None;
    }
    let at = |q| quantile(times, &buckets, q);
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
    Some(LatencySummary { count, pending: 0, mean_ns, percentiles, histogram: histogram::encode(&buckets).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_can_be_read_from_a_summary() {
        let mut histogram = LatencyHistogram::new(3);
        [100, 200, 200, 1_000_000].into_iter().for_each(|time| histogram.record(time));
        let summary = summarize(&histogram).expect("there are times");
        let counts = summary.buckets().expect("it is a histogram");
        assert_eq!(counts[..2], [(100, 1), (200, 2)]);
        assert!(counts[2].0.abs_diff(1_000_000) < 1000, "{counts:?}");
        assert!(LatencySummary { histogram: "rubbish".to_owned(), ..summary }.buckets().is_err());
    }
}
