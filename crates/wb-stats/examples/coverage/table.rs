//! The tables of `docs/statistics.md`.

use std::fmt::Write;

use super::page::percent;
use super::populations::Population;
use super::simulate::{
    Alternative, Limits, Outcome, SPREADS, Source, simulate_alternative, simulate_fixed, simulate_rule,
};

/// Minimum number of cells for a meaningful fraction
const MIN_CELLS: usize = 100;

/// All tables, as Markdown, from the results of the rule
pub(crate) fn tables(rows: &[Row]) -> String {
    let mut text = String::new();
    write_rows(&mut text, rows);
    write_alternatives(&mut text, rows);
    write_cost(&mut text, rows);
    write_fixed(&mut text);
    text
}

/// The results of one source with one rule
pub(crate) struct Row {
    pub(crate) source: Source,
    pub(crate) limits: Limits,
    pub(crate) spread: f64,
    pub(crate) outcome: Outcome,
}

/// Simulates the rule with every source and limit
pub(crate) fn simulate_rows(spreads: &[f64]) -> Vec<Row> {
    let autoregressive = Source::all().filter(|source| matches!(source, Source::Autoregressive(_)));
    let sources = (Source::all().map(|source| (source, Limits::DEFAULT)))
        .chain(autoregressive.map(|source| (source, Limits::MIN_12)))
        .chain(Source::all().map(|source| (source, Limits::RETAKES)));
    simulate(sources, spreads, simulate_rule)
}

fn simulate(
    sources: impl Iterator<Item = (Source, Limits)>,
    spreads: &[f64],
    simulate: impl Fn(Source, Limits, f64) -> Outcome,
) -> Vec<Row> {
    let cells = sources.flat_map(|(source, limits)| spreads.iter().map(move |spread| (source, limits, *spread)));
    let row = |(source, limits, spread)| Row { source, limits, spread, outcome: simulate(source, limits, spread) };
    cells.map(row).collect()
}

fn write_rows(text: &mut String, rows: &[Row]) {
    text.push_str(
        "| population | limits | spread | interval covers | of those converged | mean samples | converged | trend seen | \
         modes seen | dependence found | from 20 samples on | not checked |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        text.push_str(&row.line());
    }
}

impl Row {
    /// The row of the first table
    pub(crate) fn line(&self) -> String {
        let Self { source, limits, spread, outcome } = self;
        let share = |cells: usize, share: f64| if cells >= MIN_CELLS { percent(share) } else { "–".into() };
        format!(
            "| {} | {}–{} | {:.0} % | {} | {} | {:.1} | {} | {} | {} | {} | {} | {} |\n",
            source.name(),
            limits.min,
            limits.max,
            spread * 100.0,
            percent(outcome.coverage()),
            share(outcome.converged_cells(), outcome.coverage_of_converged()),
            outcome.mean_n(),
            percent(outcome.converged()),
            percent(outcome.trend_rate()),
            percent(outcome.modes_rate()),
            percent(outcome.dependence_rate()),
            share(outcome.checkable_cells(), outcome.dependence_rate_of_checkable()),
            percent(outcome.unchecked_rate()),
        )
    }
}

fn write_alternatives(text: &mut String, rows: &[Row]) {
    text.push_str(
        "\n| interval of the median, 6–30 samples | covers at least, one mode or 70:30 | covers at least, 50:50 | covers at \
         least, ρ = 0.5 | covers at least, ρ = 0.9 | mean samples, normal at 3 % |\n|---|--:|--:|--:|--:|--:|\n",
    );
    let taken: Vec<&Row> = rows.iter().filter(|row| row.limits == Limits::DEFAULT).collect();
    _ = writeln!(text, "| order statistics at 31/32, widened (taken) | {}", lowest_coverage(&taken));
    for (name, alternative) in [
        ("order statistics at 31/32", Alternative::NotWidened),
        ("order statistics at 95 %", Alternative::Uncorrected),
        ("Hettmansperger–Sheather at 95 %", Alternative::Interpolated),
    ] {
        let sources = Source::all().map(|source| (source, Limits::DEFAULT));
        let simulate_cells = |source, limits, spread| simulate_alternative(alternative, source, limits, spread);
        let rows = simulate(sources, &SPREADS, simulate_cells);
        _ = writeln!(text, "| {name} | {}", lowest_coverage(&rows.iter().collect::<Vec<_>>()));
    }
}

fn lowest_coverage(rows: &[&Row]) -> String {
    let over = |matches: &dyn Fn(Source) -> bool| {
        let selected = rows.iter().filter(|row| matches(row.source));
        percent(selected.map(|row| row.outcome.coverage()).fold(1.0, f64::min))
    };
    let is_steady = |source| match source {
        Source::Population(population) => !matches!(population, Population::Even | Population::Drifting),
        Source::Autoregressive(_) | Source::Contaminated(_) => false,
    };
    let normal = rows.iter().find(|row| row.source == Source::Population(Population::Normal) && row.spread == 0.03);
    format!(
        "{} | {} | {} | {} | {:.1} |",
        over(&is_steady),
        over(&|source| source == Source::Population(Population::Even)),
        over(&|source| source == Source::Autoregressive(0.5)),
        over(&|source| source == Source::Autoregressive(0.9)),
        normal.map_or(0.0, |row| row.outcome.mean_n()),
    )
}

/// What widening costs where samples are independent
fn write_cost(text: &mut String, rows: &[Row]) {
    text.push_str(
        "\n| normal, independent | limits | mean samples, not widened | widened | converged, not widened | widened \
         |\n|--:|--:|--:|--:|--:|--:|\n",
    );
    let normal = Source::Population(Population::Normal);
    for Row { source, limits, spread, outcome } in rows.iter().filter(|row| row.source == normal && row.spread < 0.04) {
        let before = simulate_alternative(Alternative::NotWidened, *source, *limits, *spread);
        _ = writeln!(
            text,
            "| {:.0} % | {}–{} | {:.1} | {:.1} | {} | {} |",
            spread * 100.0,
            limits.min,
            limits.max,
            before.mean_n(),
            outcome.mean_n(),
            percent(before.converged()),
            percent(outcome.converged()),
        );
    }
}

/// The interval and the check of a fixed number of samples
fn write_fixed(text: &mut String) {
    let autoregressive = [0.5, 0.9].map(Source::Autoregressive);
    let contaminated = [0.0, 0.9].map(Source::Contaminated);
    let sources = [Population::Normal, Population::T3].map(Source::Population);
    let sources = [sources, autoregressive, contaminated].concat();
    let headings: String = sources.iter().map(|source| format!(" {}: covers | found |", source.name())).collect();
    _ = writeln!(text, "\n| samples, fixed |{headings}\n|--:|{}", "--:|".repeat(2 * sources.len()));
    for count in [6, 12, 20, 24, 25, 30, 36, 100] {
        let columns = sources.iter().map(|source| {
            let outcome = simulate_fixed(*source, count);
            [outcome.coverage(), outcome.dependence_rate()].map(percent).join(" | ")
        });
        _ = writeln!(text, "| {count} | {} |", columns.collect::<Vec<_>>().join(" | "));
    }
}
