//! The tables of `docs/statistics.md`.

use std::fmt::Write;

use crate::populations::Population;
use crate::runs::{self, Way};
use crate::samples::{self, COUNTS, Outcome};

const BEGIN: &str = "<!-- comparing: begin, written by the example `comparing` -->";
const END: &str = "<!-- comparing: end -->";

/// What came of every population and number of samples
pub(crate) fn simulated() -> Vec<(Population, usize, Outcome)> {
    let cells = Population::ALL.into_iter().flat_map(|population| COUNTS.map(|count| (population, count)));
    cells.map(|(population, count)| (population, count, samples::compared(population, count))).collect()
}

/// Both tables, as Markdown
pub(crate) fn tables(rows: &[(Population, usize, Outcome)]) -> String {
    let mut text = String::from(
        "| population | samples a side | false alarms | 5 % found | interval covers |\n|---|--:|--:|--:|--:|\n",
    );
    for (population, count, outcome) in rows {
        _ = writeln!(
            text,
            "| {} | {count} | {} | {} | {} |",
            population.name(),
            percent(outcome.false_alarms),
            percent(outcome.found),
            outcome.covered.map_or("–".into(), percent),
        );
    }
    text.push_str("\n| runs a side | samples as if of one run: false alarms | runs' medians: false alarms | covers | bootstrap of runs: false alarms | covers |\n|--:|--:|--:|--:|--:|--:|\n");
    for count in runs::COUNTS {
        let (pooled, _) = runs::compared(Way::Pooled, count);
        let (medians, medians_cover) = runs::compared(Way::Medians, count);
        let (drawn, drawn_covers) = runs::compared(Way::Hierarchical, count);
        let covers = |share: Option<f64>| share.map_or("–".into(), percent);
        _ = writeln!(
            text,
            "| {count} | {} | {} | {} | {} | {} |",
            percent(pooled),
            percent(medians),
            covers(medians_cover),
            percent(drawn),
            covers(drawn_covers),
        );
    }
    text
}

/// A page with what is between its markers replaced by the tables; `None` if it has no markers
pub(crate) fn replace(page: &str, tables: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{tables}\n{END}{after}"))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
