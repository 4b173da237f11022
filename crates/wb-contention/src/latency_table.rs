//! The nested latency table: percentiles of I/O latencies within each second, and their distribution over the seconds.
//!
//! A device that stalls in bursts has a high p99 in a few seconds, one with a long tail in all.

use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::series::OverTime;
use crate::{LATENCY_PERCENTILES, Percentile, TIME_PERCENTILES, figures};

/// Latencies of a second: pairs of a latency in nanoseconds and the number of requests that had it, in ascending order.
pub type LatencyCounts = [(u64, u64)];

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

/// The columns of the printed table, besides `cum`, `mean` and `stdev`.
const COLUMNS: [usize; 9] = [0, 4, 5, 6, 7, 8, 9, 10, 11];

impl LatencyTable {
    /// The table of seconds; `None` if all are idle.
    pub fn new<'a>(seconds: impl IntoIterator<Item = &'a LatencyCounts>) -> Option<Self> {
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
            let over_time = Distribution::new(&values, &TIME_PERCENTILES)?;
            Some((percentile, LatencyRow { over_time, cumulative: quantile(&all, percentile) }))
        };
        let rows: Option<BTreeMap<_, _>> = LATENCY_PERCENTILES.into_iter().map(row).collect();
        Some(Self { rows: rows?, seconds: busy.len() as u64, idle_seconds: idle })
    }

    /// A figure of the table, in nanoseconds.
    pub fn get(&self, percentile: Percentile, column: OverTime) -> Option<f64> {
        let over_time = &self.rows.get(&percentile)?.over_time;
        match column {
            OverTime::Mean => Some(over_time.mean),
            OverTime::Percentile(percentile) => over_time.get(percentile),
        }
    }

    /// The table as text; `title` is the kind of requests.
    pub fn render(&self, title: &str) -> String {
        let columns = COLUMNS.map(|index| TIME_PERCENTILES[index]);
        let mut text = format!("{title:<8}");
        let heads = columns.iter().map(|percentile| percentile.label());
        for head in heads.chain(["cum", "mean", "stdev"].map(str::to_owned)) {
            // Writing to a string does not fail.
            let _ = write!(text, "{head:>7}");
        }
        for (percentile, row) in &self.rows {
            let _ = write!(text, "\n{:<8}", percentile.label());
            let over_time = columns.iter().map(|column| row.over_time.get(*column));
            let rest = [row.cumulative, row.over_time.mean, row.over_time.stdev].map(Some);
            for figure in over_time.chain(rest) {
                let _ = write!(text, "{:>7}", figure.map_or("-".to_owned(), figures::duration));
            }
        }
        text + "\n"
    }

    /// One line: mean, standard deviation and maximum of a few percentiles.
    pub fn summary(&self) -> String {
        let rows = [Percentile::P50, Percentile::P90, Percentile::P99, Percentile::MAX].into_iter();
        let figure = |percentile: Percentile| {
            Some(format!("{}={}", percentile.label(), self.rows.get(&percentile)?.over_time.mean_stdev_max()))
        };
        rows.filter_map(figure).collect::<Vec<_>>().join(" ")
    }
}

impl Distribution {
    /// `MEAN:STDEV/MAX` of times in nanoseconds.
    pub(crate) fn mean_stdev_max(&self) -> String {
        let max = self.get(Percentile::MAX).unwrap_or(self.mean);
        format!("{}:{}/{}", figures::duration(self.mean), figures::duration(self.stdev), figures::duration(max))
    }
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
    use super::*;

    #[test]
    fn bursts_are_distinguished_from_tails() {
        // Each tenth second stalls, or each tenth request: the cumulative figures are the same.
        let burst: Vec<Vec<(u64, u64)>> = (0..100)
            .map(|second| if second % 10 == 0 { vec![(9_000_000, 100)] } else { vec![(100_000, 100)] })
            .collect();
        let tail: Vec<Vec<(u64, u64)>> = (0..100).map(|_| vec![(100_000, 90), (9_000_000, 10)]).collect();
        let [burst, tail] = [burst, tail].map(|seconds| LatencyTable::new(seconds.iter().map(Vec::as_slice)).unwrap());
        assert_eq!(burst.rows[&Percentile::P50].cumulative, tail.rows[&Percentile::P50].cumulative);
        let p99 = OverTime::Percentile(Percentile::P99);
        assert_eq!((burst.get(Percentile::P50, p99), tail.get(Percentile::P50, p99)), (Some(9e6), Some(1e5)));
    }

    #[test]
    fn idle_seconds_are_counted_and_enter_no_figure() {
        let seconds: [&LatencyCounts; 4] = [&[(1000, 4)], &[], &[(1000, 0)], &[(3000, 4)]];
        let table = LatencyTable::new(seconds).unwrap();
        assert_eq!((table.seconds, table.idle_seconds), (2, 2));
        assert_eq!(table.get(Percentile::P50, OverTime::Mean), Some(2000.0));
        assert_eq!(LatencyTable::new([&[][..], &[]]), None);
    }

    #[test]
    fn the_mean_over_the_seconds_is_arithmetic() {
        let seconds: [&LatencyCounts; 2] = [&[(1_000, 1)], &[(9_000, 1)]];
        let row = &LatencyTable::new(seconds).unwrap().rows[&Percentile::MAX];
        assert_eq!((row.over_time.mean, row.over_time.stdev.round()), (5000.0, 5657.0));
    }
}
