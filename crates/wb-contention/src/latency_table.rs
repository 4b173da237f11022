//! Computes the nested latency table.

use std::collections::BTreeMap;

use wb_results::contention::{LATENCY_PERCENTILES, LatencyRow, LatencyTable, Percentile, TIME_PERCENTILES};

use crate::distribution;

/// Latencies of a second: pairs of a latency in nanoseconds and the number of requests that had it, in ascending order.
pub type LatencyCounts = [(u64, u64)];

/// The table of seconds; `None` if all are idle.
pub(crate) fn summarize_seconds<'a>(seconds: impl IntoIterator<Item = &'a LatencyCounts>) -> Option<LatencyTable> {
    let (mut busy, mut idle): (Vec<&LatencyCounts>, u64) = (Vec::new(), 0);
    for counts in seconds {
        if counts.iter().any(|(_, count)| *count > 0) { busy.push(counts) } else { idle += 1 }
    }
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for (latency, count) in busy.iter().flat_map(|counts| counts.iter()) {
        *all.entry(*latency).or_default() += count;
    }
    let all: Vec<(u64, u64)> = all.into_iter().collect();
    let row = |percentile: Percentile| {
        let values: Vec<f64> = busy.iter().map(|counts| quantile(counts, percentile)).collect();
        let over_time = distribution::summarize_values(&values, &TIME_PERCENTILES)?;
        Some((percentile, LatencyRow { over_time, cumulative: quantile(&all, percentile) }))
    };
    let rows: Option<BTreeMap<_, _>> = LATENCY_PERCENTILES.into_iter().map(row).collect();
    Some(LatencyTable { rows: rows?, seconds: busy.len() as u64, idle_seconds: idle })
}

/// The smallest latency that at least this part of the requests does not exceed, in nanoseconds.
fn quantile(counts: &LatencyCounts, percentile: Percentile) -> f64 {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let rank = ((percentile.fraction() * total as f64).ceil() as u64).max(1);
    let mut seen = 0;
    let found = counts.iter().filter(|(_, count)| *count > 0).find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    found.or(counts.last()).map_or(0.0, |(latency, _)| *latency as f64)
}

#[cfg(test)]
mod tests {
    use wb_results::contention::OverTime;

    use super::*;

    #[test]
    fn bursts_are_distinguished_from_tails() {
        // Each tenth second stalls, or each tenth request: the cumulative figures are the same.
        let burst: Vec<Vec<(u64, u64)>> = (0..100)
            .map(|second| if second % 10 == 0 { vec![(9_000_000, 100)] } else { vec![(100_000, 100)] })
            .collect();
        let tail: Vec<Vec<(u64, u64)>> = (0..100).map(|_| vec![(100_000, 90), (9_000_000, 10)]).collect();
        let [burst, tail] = [burst, tail].map(|seconds| summarize_seconds(seconds.iter().map(Vec::as_slice)).unwrap());
        assert_eq!(burst.rows[&Percentile::P50].cumulative, tail.rows[&Percentile::P50].cumulative);
        let p99 = OverTime::Percentile(Percentile::P99);
        assert_eq!((burst.get(Percentile::P50, p99), tail.get(Percentile::P50, p99)), (Some(9e6), Some(1e5)));
    }

    #[test]
    fn idle_seconds_are_counted_and_enter_no_figure() {
        let seconds: [&LatencyCounts; 4] = [&[(1000, 4)], &[], &[(1000, 0)], &[(3000, 4)]];
        let table = summarize_seconds(seconds).unwrap();
        assert_eq!((table.seconds, table.idle_seconds), (2, 2));
        assert_eq!(table.get(Percentile::P50, OverTime::Mean), Some(2000.0));
        assert_eq!(summarize_seconds([&[][..], &[]]), None);
    }

    #[test]
    fn the_mean_over_the_seconds_is_arithmetic() {
        let seconds: [&LatencyCounts; 2] = [&[(1_000, 1)], &[(9_000, 1)]];
        let row = &summarize_seconds(seconds).unwrap().rows[&Percentile::MAX];
        assert_eq!((row.over_time.mean, row.over_time.stdev.round()), (5000.0, 5657.0));
    }
}
