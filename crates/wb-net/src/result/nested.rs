//! Computes the nested latency table.

use wb_results::net::{NestedLatency, NestedRow};

use super::latency::quantile;
use crate::engine::latency::LatencyHistogram;
use crate::engine::tally::Intervals;

/// The latency percentiles of the rows, and the same as quantiles: 99.9 / 100 is not exactly 0.999 in floating point.
const PERCENTILES: [(f64, f64); 8] =
    [(50.0, 0.5), (75.0, 0.75), (90.0, 0.9), (95.0, 0.95), (99.0, 0.99), (99.9, 0.999), (99.99, 0.9999), (100.0, 1.0)];

/// The percentiles over intervals, one per column.
const OVER_INTERVALS: [f64; 7] = [0.0, 25.0, 50.0, 75.0, 90.0, 99.0, 100.0];

/// Computes the table from the latencies of all rounds and of each interval; `None` without rounds.
pub(super) fn nested_latency(all: &LatencyHistogram, intervals: &Intervals) -> Option<NestedLatency> {
    let each: Vec<_> = intervals.times.iter().map(|latencies| (latencies, latencies.to_hdr())).collect();
    let each: Vec<_> = each.into_iter().filter(|(_, histogram)| !histogram.is_empty()).collect();
    let cumulative = all.to_hdr();
    if each.is_empty() {
        return None;
    }
    let row = |(percentile, quantile_value): (f64, f64)| {
        let mut sorted: Vec<u64> =
            each.iter().map(|(latencies, histogram)| quantile(latencies, histogram, quantile_value)).collect();
        sorted.sort_unstable();
        let over = OVER_INTERVALS.iter().filter_map(|over| nearest_rank(&sorted, *over));
        let (cumulative_ns, over_intervals_ns) = (quantile(all, &cumulative, quantile_value), over.collect());
        NestedRow { percentile, cumulative_ns, over_intervals_ns }
    };
    Some(NestedLatency {
        intervals: each.len(),
        interval_seconds: intervals.length as f64 / 1e9,
        over_intervals: OVER_INTERVALS.to_vec(),
        rows: PERCENTILES.into_iter().map(row).collect(),
    })
}

fn nearest_rank(sorted: &[u64], percentile: f64) -> Option<u64> {
    let rank = (percentile / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_in_one_interval_affects_only_the_maximum() {
        let histogram = |values: &[u64]| {
            let mut histogram = LatencyHistogram::new(3);
            values.iter().for_each(|value| histogram.record(*value));
            histogram
        };
        let (quiet, stalled) = (histogram(&[100, 100]), histogram(&[100, 2000]));
        let mut all = quiet.clone();
        all.merge(&stalled);
        let mut intervals = Intervals::new(1_000_000_000);
        intervals.times = vec![quiet, LatencyHistogram::new(3), stalled];
        let nested = nested_latency(&all, &intervals).expect("there are rounds");
        assert_eq!(nested.intervals, 2);
        let last = nested.rows.last().expect("there are rows");
        assert_eq!((last.over_intervals_ns.first(), last.over_intervals_ns.last()), (Some(&100), Some(&2000)));
        assert_eq!(nested_latency(&LatencyHistogram::new(3), &Intervals::new(1)), None);
    }
}
