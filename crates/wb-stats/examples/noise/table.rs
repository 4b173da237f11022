//! The tables of `docs/statistics.md`.

use std::fmt::Write;

use super::page::{Rows, percent};
use super::populations::Population;
use super::simulate::{Outcome, Scenario};

/// Numbers of runs of the model.
const RUNS: [usize; 6] = [3, 4, 6, 8, 15, 30];
/// Numbers of samples in each run of the model, and of the sides.
const SAMPLES: [(usize, usize); 7] = [(10, 10), (6, 30), (30, 6), (10, 1), (1, 10), (1, 1), (100, 100)];

/// The results for a population and a number of runs: with noise between runs and one or three runs per side, and with
/// noise of samples only.
pub(crate) struct Row {
    pub(crate) population: Population,
    pub(crate) runs: usize,
    pub(crate) single: Outcome,
    pub(crate) three: Outcome,
    pub(crate) samples: Outcome,
}

/// The contents of both tables
pub(crate) struct Simulation {
    pub(crate) rows: Vec<Row>,
    pub(crate) sizes: Vec<((usize, usize), Outcome)>,
}

pub(crate) fn simulate(rows: Rows) -> Simulation {
    let cells = Population::ALL.into_iter().flat_map(|population| RUNS.map(|runs| (population, runs)));
    let of_populations = rows.of(cells).into_iter().map(|(population, runs)| {
        let single = Scenario { population, between: 0.03, within: 0.02, runs, samples: 10, side: 1, side_samples: 10 };
        Row {
            population,
            runs,
            single: single.simulate(),
            three: Scenario { side: 3, ..single }.simulate(),
            samples: Scenario { between: 0.0, within: 0.05, ..single }.simulate(),
        }
    });
    let sizes = rows.of(SAMPLES.into_iter()).into_iter().map(|(samples, side_samples)| {
        let population = Population::Normal;
        let scene = Scenario { population, between: 0.02, within: 0.05, runs: 6, samples, side: 1, side_samples };
        ((samples, side_samples), scene.simulate())
    });
    Simulation { rows: of_populations.collect(), sizes: sizes.collect() }
}

/// Both tables, as Markdown
pub(crate) fn tables(simulated: &Simulation) -> String {
    let mut text = String::from(
        "| population | runs of the model | runs differ: false alarms | not widened | 10 % found | half width | trend seen | three runs \
         a side: false alarms | 10 % found | samples alone differ: false alarms | 10 % found | modes seen |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for Row { population, runs, single, three, samples } in &simulated.rows {
        let figures = [
            single.alarms,
            single.not_widened,
            single.detected,
            single.half_width,
            single.trend,
            three.alarms,
            three.detected,
            samples.alarms,
            samples.detected,
            samples.modes,
        ];
        _ = writeln!(text, "| {} | {runs} | {} |", population.name(), figures.map(percent).join(" | "));
    }
    text.push_str(
        "\n| samples in a run of the model | in a side's run | false alarms | 10 % found | half width |\n\
         |--:|--:|--:|--:|--:|\n",
    );
    for ((model, side), outcome) in &simulated.sizes {
        let figures = [outcome.alarms, outcome.detected, outcome.half_width].map(percent).join(" | ");
        _ = writeln!(text, "| {model} | {side} | {figures} |");
    }
    text
}
