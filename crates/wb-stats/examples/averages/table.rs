//! The table of `docs/statistics.md`.

use std::fmt::Write;

use super::page::percent;
use super::simulate::{Outcome, Shape, simulate as simulate_averages};

/// The minimum and the maximum number of samples: fixed numbers, and the default limits.
const LIMITS: [(usize, usize); 4] = [(6, 6), (12, 12), (100, 100), (6, 30)];
/// Correlations of the deviates of one round.
pub(crate) const CORRELATIONS: [f64; 4] = [0.0, 0.5, 0.85, 0.95];

/// The results for a population and limits, for each correlation
pub(crate) struct Row {
    pub(crate) shape: Shape,
    pub(crate) limits: (usize, usize),
    pub(crate) outcomes: [Outcome; CORRELATIONS.len()],
}

pub(crate) fn simulate(shapes: &[Shape]) -> Vec<Row> {
    let rows = shapes.iter().flat_map(|shape| LIMITS.map(|limits| (*shape, limits)));
    let outcomes = |shape, limits| CORRELATIONS.map(|correlation| simulate_averages(shape, limits, correlation));
    rows.map(|(shape, limits)| Row { shape, limits, outcomes: outcomes(shape, limits) }).collect()
}

/// The table, as Markdown
pub(crate) fn table(rows: &[Row]) -> String {
    let headings = CORRELATIONS.map(|correlation| format!(" ρ = {correlation}: covers | as independent | width |"));
    let mut text =
        format!("| population | samples |{}\n|---|--:|{}\n", headings.concat(), "--:|".repeat(3 * CORRELATIONS.len()));
    for row in rows {
        text.push_str(&row.line());
    }
    text
}

impl Row {
    pub(crate) fn line(&self) -> String {
        let samples = match self.limits {
            (min, max) if min == max => min.to_string(),
            (min, max) => format!("{min}–{max}"),
        };
        let mut line = format!("| {} | {samples} |", self.shape.0.name());
        for Outcome { covered, covered_as_independent, relative_width } in &self.outcomes {
            let (covered, independent) = (percent(*covered), percent(*covered_as_independent));
            _ = write!(line, " {covered} | {independent} | {relative_width:.2} |");
        }
        line.push('\n');
        line
    }
}
