//! The nested latency table: percentiles of latency per second, and their percentiles over the seconds.

use std::collections::BTreeMap;

use crate::evaluated_attempt::EvaluatedAttempt;
use crate::result::{NestedLatency, NestedRow};

/// The latency percentiles, one per row.
const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0];

/// The percentiles over seconds, one per column.
const OVER_SECONDS: [f64; 7] = [0.0, 25.0, 50.0, 75.0, 90.0, 99.0, 100.0];

/// The tables, one per kind of operation, over all seconds of all counted samples.
pub fn nested_latency(counted: &[&EvaluatedAttempt]) -> Vec<NestedLatency> {
    let mut by_title: BTreeMap<&str, Vec<&[(u64, u64)]>> = BTreeMap::new();
    let measured = counted.iter().filter_map(|evaluated| evaluated.measurement.as_ref());
    for latencies in measured.flat_map(|measured| &measured.latencies) {
        let seconds = latencies.seconds.iter().filter(|second| !second.is_empty());
        by_title.entry(&latencies.title).or_default().extend(seconds.map(Vec::as_slice));
    }
    let tables = by_title.into_iter().filter(|(_, seconds)| !seconds.is_empty());
    tables.map(|(title, seconds)| table(title, &seconds)).collect()
}

fn table(title: &str, seconds: &[&[(u64, u64)]]) -> NestedLatency {
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for (latency, count) in seconds.iter().copied().flatten() {
        *all.entry(*latency).or_default() += count;
    }
    let all: Vec<(u64, u64)> = all.into_iter().collect();
    let row = |percentile: f64| {
        let mut values_by_second: Vec<u64> = seconds.iter().map(|second| percentile_at(second, percentile)).collect();
        values_by_second.sort_unstable();
        let ranked: Vec<(u64, u64)> = values_by_second.into_iter().map(|latency| (latency, 1)).collect();
        let over_seconds_ns = OVER_SECONDS.iter().map(|over| percentile_at(&ranked, *over) as f64).collect();
        NestedRow { percentile, cumulative_ns: percentile_at(&all, percentile) as f64, over_seconds_ns }
    };
    NestedLatency {
        title: title.to_owned(),
        over_seconds: OVER_SECONDS.to_vec(),
        rows: PERCENTILES.iter().copied().map(row).collect(),
    }
}

/// The nearest-rank percentile of (value, count), values ascending.
fn percentile_at(counts: &[(u64, u64)], percentile: f64) -> u64 {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let rank = ((percentile / 100.0 * total as f64).ceil() as u64).max(1);
    let mut cumulative = 0;
    let reached = counts.iter().find(|(_, count)| {
        cumulative += count;
        cumulative >= rank
    });
    reached.or(counts.last()).map_or(0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_stalls_in_bursts_differs_from_one_with_a_long_tail() {
        // Ten seconds of a thousand operations; one in a hundred takes 1 ms. In bursts they all fall into one second.
        let quiet: &[(u64, u64)] = &[(100, 1000)];
        let stalled: &[(u64, u64)] = &[(100, 900), (1_000_000, 100)];
        let tailed: &[(u64, u64)] = &[(100, 990), (1_000_000, 10)];
        let bursts: Vec<&[(u64, u64)]> = std::iter::once(stalled).chain(std::iter::repeat_n(quiet, 9)).collect();
        let tail: Vec<&[(u64, u64)]> = std::iter::repeat_n(tailed, 10).collect();
        let row = |seconds: &[&[(u64, u64)]]| {
            let table = table("x", seconds);
            table.rows.into_iter().find(|row| row.percentile == 99.9).unwrap()
        };
        assert_eq!(row(&bursts).cumulative_ns, row(&tail).cumulative_ns);
        assert_eq!(row(&bursts).over_seconds_ns[2], 100.0);
        assert_eq!(row(&tail).over_seconds_ns[2], 1_000_000.0);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let counts = [(1, 50), (2, 49), (3, 1)];
        assert_eq!(
            [
                percentile_at(&counts, 0.0),
                percentile_at(&counts, 50.0),
                percentile_at(&counts, 99.0),
                percentile_at(&counts, 100.0)
            ],
            [1, 1, 2, 3]
        );
        assert_eq!(percentile_at(&[], 50.0), 0);
    }
}
