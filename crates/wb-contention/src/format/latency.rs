//! Latencies of I/O.

use std::fmt::Write;

use wb_results::contention::{Distribution, IoLatencies, LatencyTable, Percentile, TIME_PERCENTILES};

use super::Detail;
use crate::figures::{duration, percent};

/// Part of the requests that may be in no table: with more, the p99 may be another.
const UNCOUNTED_MAX: f64 = 0.01;

pub(crate) fn text(latencies: &IoLatencies, detail: Detail) -> String {
    let mut text = String::new();
    if detail == Detail::Full {
        text.push_str("IO latency distribution over the seconds (mean: arithmetic):\n\n");
        for (title, table) in [("READ", &latencies.read), ("WRITE", &latencies.write)] {
            if let Some(table) = table {
                text += &format!("{}\n", latency_table(table, title));
            }
        }
    }
    let line = |table: &Option<LatencyTable>| {
        let table = table.as_ref()?;
        let idle = if table.idle_seconds > 0 { format!(" idle={}s", table.idle_seconds) } else { String::new() };
        Some(format!("{}{idle}", summary(table)))
    };
    let none = || "none".to_owned();
    text += &format!("IO latency: R {}\n", line(&latencies.read).unwrap_or_else(none));
    text += &format!("            W {}\n", line(&latencies.write).unwrap_or_else(none));
    if latencies.uncounted > 0 {
        let part = latencies.uncounted_part();
        text += &format!("            {} requests ({}%) are in no table", latencies.uncounted, percent(part));
        if part > UNCOUNTED_MAX {
            text += &format!(", more than {}%: they may be the slowest", percent(UNCOUNTED_MAX));
        }
        text.push('\n');
    }
    text
}

/// The columns of the printed table, besides `cum`, `mean` and `stdev`.
const COLUMNS: [usize; 9] = [0, 4, 5, 6, 7, 8, 9, 10, 11];

/// A table as text; `title` is the kind of requests.
pub fn latency_table(table: &LatencyTable, title: &str) -> String {
    let columns = COLUMNS.map(|index| TIME_PERCENTILES[index]);
    let mut text = format!("{title:<8}");
    let heads = columns.iter().map(|percentile| percentile.label());
    for head in heads.chain(["cum", "mean", "stdev"].map(str::to_owned)) {
        // Writing to a string does not fail.
        let _ = write!(text, "{head:>7}");
    }
    for (percentile, row) in &table.rows {
        let _ = write!(text, "\n{:<8}", percentile.label());
        let over_time = columns.iter().map(|column| row.over_time.get(*column));
        let rest = [row.cumulative, row.over_time.mean, row.over_time.stdev].map(Some);
        for figure in over_time.chain(rest) {
            let _ = write!(text, "{:>7}", figure.map_or("-".to_owned(), duration));
        }
    }
    text + "\n"
}

/// One line: mean, standard deviation and maximum of a few percentiles.
fn summary(table: &LatencyTable) -> String {
    let rows = [Percentile::P50, Percentile::P90, Percentile::P99, Percentile::MAX].into_iter();
    let figure = |percentile: Percentile| {
        Some(format!("{}={}", percentile.label(), mean_stdev_max(&table.rows.get(&percentile)?.over_time)))
    };
    rows.filter_map(figure).collect::<Vec<_>>().join(" ")
}

/// `MEAN:STDEV/MAX` of times in nanoseconds.
fn mean_stdev_max(distribution: &Distribution) -> String {
    let Distribution { mean, stdev, .. } = *distribution;
    let max = distribution.get(Percentile::MAX).unwrap_or(mean);
    format!("{}:{}/{}", duration(mean), duration(stdev), duration(max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency_table::summarize_seconds;

    #[test]
    fn requests_that_were_not_counted_are_reported() {
        let mut latencies = IoLatencies { read: summarize_seconds([[(1000, 1)].as_slice()]), ..IoLatencies::default() };
        assert!(!text(&latencies, Detail::Summary).contains("in no table"));
        let last_line = |latencies: &IoLatencies| text(latencies, Detail::Summary).lines().last().unwrap().to_owned();
        (latencies.uncounted, latencies.counted) = (3, 997);
        assert_eq!(last_line(&latencies), "            3 requests (0.30%) are in no table");
        latencies.uncounted = 60;
        let expected = "            60 requests (5.68%) are in no table, more than 1.00%: they may be the slowest";
        assert_eq!(last_line(&latencies), expected);
    }
}
