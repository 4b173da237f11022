//! The tables of `docs/statistics.md`.

use std::fmt::Write;

use super::page::percent;
use super::populations::Population;
use super::simulate::{Alternative, Outcome, SPREADS, simulate_alternative};

/// Minimum number of cells for a meaningful fraction
const MIN_CELLS: usize = 100;

/// Both tables, as Markdown, from the results of the rule
pub(crate) fn tables(rows: &[Row]) -> String {
    let mut text = String::from(
        "| population | spread | interval covers | of those converged | mean samples | converged | trend seen | modes \
         seen |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for Row { population, spread, outcome } in rows {
        let converged = outcome.converged_cells() >= MIN_CELLS;
        let of_converged = if converged { percent(outcome.coverage_of_converged()) } else { "–".into() };
        _ = writeln!(
            text,
            "| {} | {:.0} % | {} | {of_converged} | {:.1} | {} | {} | {} |",
            population.name(),
            spread * 100.0,
            percent(outcome.coverage()),
            outcome.mean_n(),
            percent(outcome.converged()),
            percent(outcome.trend_rate()),
            percent(outcome.modes_rate()),
        );
    }
    text.push_str(
        "\n| interval of the median | covers at least, one mode or 70:30 | covers at least, 50:50 | mean samples, normal \
         at 3 % |\n|---|--:|--:|--:|\n",
    );
    _ = writeln!(text, "| order statistics at 31/32 (taken) | {}", lowest_coverage(rows));
    for (name, alternative) in [
        ("order statistics at 95 %", Alternative::Uncorrected),
        ("Hettmansperger–Sheather at 95 %", Alternative::Interpolated),
    ] {
        let rows = simulate(|population, spread| simulate_alternative(alternative, population, spread));
        _ = writeln!(text, "| {name} | {}", lowest_coverage(&rows));
    }
    text
}

/// The results of one population and spread
pub(crate) struct Row {
    pub(crate) population: Population,
    pub(crate) spread: f64,
    pub(crate) outcome: Outcome,
}

/// Simulates every population with every spread
pub(crate) fn simulate(simulate: impl Fn(Population, f64) -> Outcome) -> Vec<Row> {
    let cells = Population::ALL.into_iter().flat_map(|population| SPREADS.map(|spread| (population, spread)));
    cells.map(|(population, spread)| Row { population, spread, outcome: simulate(population, spread) }).collect()
}

fn lowest_coverage(rows: &[Row]) -> String {
    let over = |matches: &dyn Fn(Population) -> bool| {
        let selected = rows.iter().filter(|row| matches(row.population));
        selected.map(|row| row.outcome.coverage()).fold(1.0, f64::min)
    };
    let steady = over(&|population| !matches!(population, Population::Even | Population::Drifting));
    let even = over(&|population| population == Population::Even);
    let normal = rows.iter().find(|row| row.population == Population::Normal && row.spread == 0.03);
    let mean_n = normal.map_or(0.0, |row| row.outcome.mean_n());
    format!("{} | {} | {mean_n:.1} |", percent(steady), percent(even))
}
