//! Use of the machine's resources, and the kernel's statistics: `format --rstat`.

use std::fmt::Write;

use wb_results::contention::{Distribution, PERCENTILES, ResourceUse};

use crate::figures::{percent, size};
use crate::spec::Statistics;

/// The rows that are always shown: the name of a figure, its label, and whether it is a share.
const USE: [(&str, &str, bool); 9] = [
    ("cpu", "cpu%", true),
    ("sys", "sys%", true),
    ("mem", "mem", false),
    ("swap", "swap", false),
    ("cpu-some", "cpu-some%", true),
    ("mem-some", "mem-some%", true),
    ("mem-full", "mem-full%", true),
    ("io-some", "io-some%", true),
    ("io-full", "io-full%", true),
];
const FILES: [&str; 3] = ["memory.stat", "io.stat", "vmstat"];
/// Beginnings of the names of statistics that tell how memory is reclaimed, and how fast it comes back.
const MAIN: [&str; 18] = [
    "active_",
    "allocstall",
    "anon",
    "cost.",
    "file",
    "inactive_",
    "nr_dirty",
    "nr_free",
    "nr_writeback",
    "oom",
    "pgfault",
    "pgmajfault",
    "pgpg",
    "pgscan",
    "pgsteal",
    "pswp",
    "rios",
    "workingset_",
];
/// Further names: the directions of I/O.
const MAIN_IO: [&str; 3] = ["rbytes", "wbytes", "wios"];

/// Tables of the whole measurement and of its end.
pub(crate) fn text(resources: &ResourceUse, statistics: Statistics) -> String {
    let mut text = String::new();
    for (title, figures) in [("ALL", &resources.all), ("FINAL", &resources.last)] {
        let rows = USE.iter().filter_map(|(name, label, is_share)| {
            let format: fn(f64) -> String = if *is_share { percent } else { size };
            Some((*label, figures.get(*name)?, format))
        });
        text += &table(title, &rows.collect::<Vec<_>>());
        for file in FILES {
            let rows = figures.iter().filter_map(|(name, distribution)| {
                let name = name.strip_prefix(file)?.strip_prefix('/')?;
                statistics.include(name).then_some((name, distribution, size as fn(f64) -> String))
            });
            text += &table(&format!("{title} - {file}"), &rows.collect::<Vec<_>>());
        }
    }
    text
}

impl Statistics {
    fn include(self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::Main => MAIN.iter().chain(&MAIN_IO).any(|main| name.starts_with(main)),
            Self::All => true,
        }
    }
}

/// A row: its label, what it shows, and how.
type Row<'a> = (&'a str, &'a Distribution, fn(f64) -> String);

/// A table; nothing without rows.
fn table(title: &str, rows: &[Row<'_>]) -> String {
    let Some(width) = rows.iter().map(|(label, ..)| label.len()).max() else { return String::new() };
    let width = width.max(title.len());
    let mut text = format!("\n{title:<width$}");
    for head in PERCENTILES.iter().map(|percentile| percentile.label()).chain(["mean", "stdev"].map(str::to_owned)) {
        // Writing to a string does not fail.
        let _ = write!(text, " {head:>5}");
    }
    for (label, distribution, format) in rows {
        let _ = write!(text, "\n{label:<width$}");
        let percentiles = PERCENTILES.iter().map(|percentile| distribution.get(*percentile));
        for value in percentiles.chain([distribution.mean, distribution.stdev].map(Some)) {
            let _ = write!(text, " {:>5}", value.map_or("-".to_owned(), format));
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::distribution;

    #[test]
    fn statistics_are_shown_at_the_level_that_is_requested() {
        let figures = [
            ("cpu", 0.025),
            ("mem", 3e9),
            ("memory.stat/anon", 2e9),
            ("memory.stat/percpu", 4e6),
            ("io.stat/rbytes", 5e7),
            ("vmstat/pgmajfault", 12.0),
            ("vmstat/numa_hit", 7.0),
        ];
        let distributions: BTreeMap<String, Distribution> = figures
            .into_iter()
            .filter_map(|(name, value)| {
                Some((name.to_owned(), distribution::summarize_values(&[value, value], &PERCENTILES)?))
            })
            .collect();
        let resources = ResourceUse { all: distributions.clone(), last: BTreeMap::new() };
        let labels = |statistics| {
            let text = text(&resources, statistics);
            let first = |line: &str| line.split("  ").next().map(str::trim).unwrap_or_default().to_owned();
            text.lines().map(first).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(", ")
        };
        assert!(text(&resources, Statistics::None).contains("\ncpu%  2.50  2.50"));
        assert_eq!(labels(Statistics::None), "ALL, cpu%, mem");
        assert_eq!(
            labels(Statistics::Main),
            "ALL, cpu%, mem, ALL - memory.stat, anon, ALL - io.stat, rbytes, ALL - vmstat, pgmajfault"
        );
        assert_eq!(
            labels(Statistics::All),
            "ALL, cpu%, mem, ALL - memory.stat, anon, percpu, ALL - io.stat, rbytes, ALL - vmstat, numa_hit, pgmajfault"
        );
    }
}
