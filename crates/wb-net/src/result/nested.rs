//! The nested latency table: percentiles of each interval by itself, and their percentiles over the intervals.
//!
//! It tells a connection that stalls in bursts from one with a long tail.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::latency::quantile;
use crate::engine::{latency::LatencyHistogram, tally::Intervals};

/// The latency percentiles of the rows, and the quantiles that they are: 99.9 / 100 is not 0.999 to a computer.
const PERCENTILES: [(f64, f64); 8] =
    [(50.0, 0.5), (75.0, 0.75), (90.0, 0.9), (95.0, 0.95), (99.0, 0.99), (99.9, 0.999), (99.99, 0.9999), (100.0, 1.0)];

/// The percentiles over intervals of the columns.
const OVER_INTERVALS: [f64; 7] = [0.0, 25.0, 50.0, 75.0, 90.0, 99.0, 100.0];

/// Percentiles per interval, and how they spread over the intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NestedLatency {
    /// How many intervals had rounds.
    pub intervals: usize,
    /// How long one is, in seconds.
    pub interval_seconds: f64,
    /// The percentiles of the columns, over intervals: 0 (least) to 100 (largest).
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
    /// Over all rounds, in nanoseconds.
    pub cumulative_ns: u64,
    /// The percentiles over intervals, as the table's columns, in nanoseconds.
    pub over_intervals_ns: Vec<u64>,
}

impl NestedLatency {
    /// Of all rounds and those of each interval; none where there are no rounds.
    pub(super) fn from_intervals(all: &LatencyHistogram, intervals: &Intervals) -> Option<Self> {
        let each: Vec<_> = intervals.times.iter().map(|times| (times, times.to_hdr())).collect();
        let each: Vec<_> = each.into_iter().filter(|(_, histogram)| !histogram.is_empty()).collect();
        let cumulative = all.to_hdr();
        if each.is_empty() {
            return None;
        }
        let row = |(percentile, wanted): (f64, f64)| {
            let mut sorted: Vec<u64> =
                each.iter().map(|(times, histogram)| quantile(times, histogram, wanted)).collect();
            sorted.sort_unstable();
            let over = OVER_INTERVALS.iter().filter_map(|over| nearest_rank(&sorted, *over));
            let (cumulative_ns, over_intervals_ns) = (quantile(all, &cumulative, wanted), over.collect());
            NestedRow { percentile, cumulative_ns, over_intervals_ns }
        };
        Some(Self {
            intervals: each.len(),
            interval_seconds: intervals.length as f64 / 1e9,
            over_intervals: OVER_INTERVALS.to_vec(),
            rows: PERCENTILES.into_iter().map(row).collect(),
        })
    }
}

fn nearest_rank(sorted: &[u64], percentile: f64) -> Option<u64> {
    let rank = (percentile / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_in_one_interval_shows_in_the_largest_alone() {
        let times = |values: &[u64]| {
            let mut times = LatencyHistogram::new(3);
            values.iter().for_each(|value| times.record(*value));
            times
        };
        let (quiet, stalled) = (times(&[100, 100]), times(&[100, 2000]));
        let mut all = quiet.clone();
        all.merge(&stalled);
        let mut intervals = Intervals::new(1_000_000_000);
        intervals.times = vec![quiet, LatencyHistogram::new(3), stalled];
        let nested = NestedLatency::from_intervals(&all, &intervals).expect("there are rounds");
        assert_eq!(nested.intervals, 2);
        let last = nested.rows.last().expect("there are rows");
        assert_eq!((last.over_intervals_ns.first(), last.over_intervals_ns.last()), (Some(&100), Some(&2000)));
        assert_eq!(NestedLatency::from_intervals(&LatencyHistogram::new(3), &Intervals::new(1)), None);
    }
}
