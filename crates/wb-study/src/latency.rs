//! The nested latency table: percentiles of latency per second, and their percentiles over the seconds.

use std::collections::BTreeMap;

use wb_model::Unit;
use wb_results::{CurveSet, NestedLatency, NestedRow};
use wb_test::{LatencySeries, SampleCurve};

use crate::curves;
use crate::evaluated_attempt::EvaluatedAttempt;

/// The latency percentiles, one per row.
const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0];

/// The percentiles over seconds, one per column.
const OVER_SECONDS: [f64; 7] = [0.0, 25.0, 50.0, 75.0, 90.0, 99.0, 100.0];

/// The latency percentiles that are shown over time.
const OVER_TIME: [(&str, f64); 3] = [("p50", 50.0), ("p99", 99.0), ("max", 100.0)];

/// The maximum number of points of a line over time; more intervals are merged.
const MAX_POINTS: usize = 60;

/// Makes one table per kind of operation, over all seconds of all counted samples.
pub fn nested_latency(counted: &[&EvaluatedAttempt]) -> Vec<NestedLatency> {
    let mut by_title: BTreeMap<&str, Vec<&LatencySeries>> = BTreeMap::new();
    let measured = counted.iter().filter_map(|evaluated| evaluated.measurement.as_ref());
    for latencies in measured.flat_map(|measured| &measured.latencies) {
        by_title.entry(&latencies.title).or_default().push(latencies);
    }
    let tables = by_title.into_iter().filter_map(|(title, series)| {
        let seconds = series.iter().flat_map(|series| &series.seconds).filter(|second| !second.is_empty());
        let seconds: Vec<&[(u64, u64)]> = seconds.map(Vec::as_slice).collect();
        (!seconds.is_empty()).then(|| NestedLatency { over_time: over_time(&series), ..table(title, &seconds) })
    });
    tables.collect()
}

fn table(title: &str, seconds: &[&[(u64, u64)]]) -> NestedLatency {
    let all = merge_histograms(seconds);
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
        over_time: None,
    }
}

/// The percentiles over the time within a sample, of the samples of one kind of operation; `None` if there is no time
/// over which they could change.
fn over_time(series: &[&LatencySeries]) -> Option<CurveSet> {
    let longest = series.iter().map(|series| series.seconds.len()).max()?;
    // The same for all samples, so that their points have the same times.
    let step = longest.div_ceil(MAX_POINTS).max(1);
    let curves: Vec<SampleCurve> = series.iter().map(|series| sample_curve(series, step)).collect();
    let merged = curves::merge(&curves.iter().collect::<Vec<_>>()).into_iter().next()?;
    merged.lines.iter().any(|line| line.points.len() > 1).then_some(merged)
}

/// The percentiles of one sample, of `step` intervals together each.
fn sample_curve(series: &LatencySeries, step: usize) -> SampleCurve {
    let histograms = series.seconds.chunks(step).enumerate().map(|(index, chunk)| {
        let middle = (index * step) as f64 + step as f64 / 2.0;
        (middle * series.interval.seconds(), merge_histograms(&chunk.iter().map(Vec::as_slice).collect::<Vec<_>>()))
    });
    let histograms: Vec<(f64, Vec<(u64, u64)>)> = histograms.filter(|(_, histogram)| !histogram.is_empty()).collect();
    let line = |(name, percentile): &(&str, f64)| {
        let point = |(time, histogram): &(f64, Vec<(u64, u64)>)| (*time, percentile_at(histogram, *percentile) as f64);
        ((*name).to_owned(), histograms.iter().map(point).collect())
    };
    SampleCurve {
        title: format!("{}: latency over the time of a sample", series.title),
        x: ("time in the sample".to_owned(), Unit::new("s")),
        y: ("latency".to_owned(), Unit::new("ns")),
        lines: OVER_TIME.iter().map(line).collect(),
    }
}

/// The histogram of all operations of several, by (latency, operations).
fn merge_histograms(histograms: &[&[(u64, u64)]]) -> Vec<(u64, u64)> {
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for (latency, count) in histograms.iter().copied().flatten() {
        *all.entry(*latency).or_default() += count;
    }
    all.into_iter().collect()
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

    fn series(intervals: usize, latency_of: impl Fn(usize) -> u64) -> LatencySeries {
        let seconds = (0..intervals).map(|index| vec![(100, 98), (latency_of(index), 2)]).collect();
        LatencySeries { title: "read".to_owned(), interval: wb_model::Nanos(200_000_000), seconds }
    }

    #[test]
    fn a_stall_in_the_same_second_of_each_sample_shows_over_time() {
        let stalls = |longest: u64| series(5, move |position| if position == 3 { longest } else { 200 });
        let curve = over_time(&[&stalls(5000), &stalls(7000), &stalls(6000)]).unwrap();
        let line = |name: &str| {
            let line = curve.lines.iter().find(|line| line.name == name).unwrap();
            line.points.iter().map(|point| (point.x, point.y)).collect::<Vec<_>>()
        };
        assert_eq!(line("p50").iter().map(|(_, y)| *y).collect::<Vec<_>>(), [100.0; 5]);
        let p99 = line("p99");
        assert_eq!(p99.iter().map(|(_, y)| *y).collect::<Vec<_>>(), [200.0, 200.0, 200.0, 6000.0, 200.0]);
        assert!((p99[3].0 - 0.7).abs() < 1e-9, "the middle of the interval from 0.6 to 0.8 s: {p99:?}");
    }

    #[test]
    fn many_intervals_are_merged_and_a_single_one_has_no_time() {
        let long = series(1000, |_| 200);
        let curve = over_time(&[&long, &series(20, |_| 300)]).unwrap();
        assert!(curve.lines.iter().all(|line| (MAX_POINTS / 2..=MAX_POINTS).contains(&line.points.len())));
        assert!(over_time(&[&series(1, |_| 200)]).is_none());
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
