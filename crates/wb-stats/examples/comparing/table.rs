//! The tables of `docs/statistics.md`.

use std::fmt::Write;

use super::page::percent;
use super::populations::Population;
use super::runs::Row;
use super::samples::{self, COUNTS, Outcome};

/// Simulates every population and number of samples
pub(crate) fn simulate() -> Vec<(Population, usize, Outcome)> {
    let cells = Population::ALL.into_iter().flat_map(|population| COUNTS.map(|count| (population, count)));
    cells.map(|(population, count)| (population, count, samples::simulate(population, count))).collect()
}

/// Both tables, as Markdown
pub(crate) fn tables(rows: &[(Population, usize, Outcome)], runs: &[Row]) -> String {
    let mut text = String::from(
        "| population | samples a side | false alarms | 5 % found | interval covers |\n|---|--:|--:|--:|--:|\n",
    );
    for (population, count, outcome) in rows {
        _ = writeln!(
            text,
            "| {} | {count} | {} | {} | {} |",
            population.name(),
            percent(outcome.false_alarms),
            percent(outcome.detected),
            outcome.covered.map_or("–".into(), percent),
        );
    }
    text.push_str("\n| runs a side | samples as if of one run: false alarms | runs' medians: false alarms | covers | bootstrap of runs: false alarms | covers |\n|--:|--:|--:|--:|--:|--:|\n");
    let covers = |share: Option<f64>| share.map_or("–".into(), percent);
    for Row { count, pooled, medians, hierarchical } in runs {
        _ = writeln!(
            text,
            "| {count} | {} | {} | {} | {} | {} |",
            percent(pooled.0),
            percent(medians.0),
            covers(medians.1),
            percent(hierarchical.0),
            covers(hierarchical.1),
        );
    }
    text
}
