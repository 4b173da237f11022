//! The table of `docs/statistics.md`.

use std::fmt::Write;

use super::page::{Rows, percent};
use super::populations::Population;
use super::samples::{self, COUNTS, Outcome, UNLIKE};

/// The comparisons of sides that vary alike, by their number of samples, and of those that do not.
pub(crate) struct Simulation {
    pub(crate) alike: Vec<(Population, usize, Outcome)>,
    pub(crate) unlike: Vec<(Population, [usize; 2], [u32; 2], Outcome)>,
}

/// Populations that are symmetric: whatever its spread is, a side is as often above as below another one of them.
const SYMMETRIC: [Population; 2] = [Population::Normal, Population::T3];

/// A noise, in percent, with which samples of heavy tails are below zero.
const WIDE: u32 = 20;

/// Simulates populations and numbers of samples
pub(crate) fn simulate(rows: Rows) -> Simulation {
    let alike = Population::ALL.into_iter().flat_map(|population| COUNTS.map(|count| (population, count)));
    let alike = rows.of(alike).into_iter();
    let alike = alike.map(|(population, count)| (population, count, samples::simulate(population, count)));
    let unlike =
        SYMMETRIC.into_iter().flat_map(|population| UNLIKE.map(|(counts, spreads)| (population, counts, spreads)));
    let unlike = unlike.filter(|(population, _, spreads)| {
        *population == Population::Normal || *spreads.iter().max().unwrap_or(&0) < WIDE
    });
    let unlike = rows.of(unlike).into_iter();
    let unlike = unlike.map(|(population, counts, spreads)| {
        (population, counts, spreads, samples::simulate_unlike(population, counts, spreads))
    });
    Simulation { alike: alike.collect(), unlike: unlike.collect() }
}

/// The tables, as Markdown
pub(crate) fn table(rows: &Simulation) -> String {
    let mut text = String::from(
        "| population | samples a side | false alarms | 5 % found | interval covers |\n|---|--:|--:|--:|--:|\n",
    );
    for (population, count, outcome) in &rows.alike {
        _ = writeln!(text, "| {} | {count} | {} |", population.name(), figures(outcome));
    }
    text += "\n| population | samples | noise | by Wilcoxon alone: false alarms | false alarms | 5 % found | interval covers |\n|---|--:|--:|--:|--:|--:|--:|\n";
    for (population, [n, m], [one, other], outcome) in &rows.unlike {
        let by_ranks = percent(outcome.false_alarms_by_ranks);
        let sides = format!("{n} and {m} | {one} % and {other} % | {by_ranks}");
        _ = writeln!(text, "| {} | {sides} | {} |", population.name(), figures(outcome));
    }
    text
}

fn figures(outcome: &Outcome) -> String {
    let Outcome { false_alarms, detected, covered, .. } = outcome;
    format!("{} | {} | {}", percent(*false_alarms), percent(*detected), covered.map_or("–".into(), percent))
}
