//! The table of `docs/statistics.md`.

use std::fmt::Write;

use super::page::percent;
use super::populations::Population;
use super::samples::{self, COUNTS, Outcome};

/// Simulates every population and number of samples
pub(crate) fn simulate() -> Vec<(Population, usize, Outcome)> {
    let cells = Population::ALL.into_iter().flat_map(|population| COUNTS.map(|count| (population, count)));
    cells.map(|(population, count)| (population, count, samples::simulate(population, count))).collect()
}

/// The table, as Markdown
pub(crate) fn table(rows: &[(Population, usize, Outcome)]) -> String {
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
    text
}
