//! The tables of averages.

use wb_compare::tolerance::averages::{AverageRow, Distribution};

use super::figures::readable_id;
use super::{AveragesTable, ScoreDistribution};
use crate::phrasing::NO_VALUE;
use crate::text::{Style, Table, figure_columns, figure_row};

/// The tables; those that have the same figures are one, by the first one's identifiers.
pub(super) fn render_averages(all: &[AveragesTable<'_>], style: Style) -> String {
    let mut distinct: Vec<(Vec<&str>, &[AverageRow<'_>])> = Vec::new();
    for (over, rows) in all {
        match distinct.iter_mut().find(|(_, known)| has_same_figures(known, rows)) {
            Some((names, _)) => names.push(over),
            None => distinct.push((vec![over], rows)),
        }
    }
    distinct
        .iter()
        .map(|(names, rows)| table(&format!("averages by {}, in percent", join_names(names)), rows, style))
        .collect()
}

fn has_same_figures(one: &[AverageRow<'_>], other: &[AverageRow<'_>]) -> bool {
    let figures = |row: &AverageRow<'_>| (row.means, row.stddevs);
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| figures(one) == figures(other))
}

/// How the scores of primary checks lie, of all and of those of each verdict.
pub(super) fn render_scores(all: &[ScoreDistribution<'_>], style: Style) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&figure_columns("", &["n", "median", "min", "max", "sum", "mean"]));
    for (name, of) in all {
        let count = of.map_or(0, |distribution| distribution.count);
        let figures = match of {
            None => std::array::from_fn::<_, 5, _>(|_| NO_VALUE.to_owned()),
            Some(of) => [of.median, of.min, of.max, of.mean() * count as f64, of.mean()].map(format_score),
        };
        table.row(figure_row(format!("  {name}"), std::iter::once(count.to_string()).chain(figures)));
    }
    style.heading("scores of primary checks by tolerance, in percent") + &table.draw(style)
}

/// A score, with two decimals and no sign of zero.
fn format_score(score: f64) -> String {
    format!("{:.2}", score + 0.0)
}

/// Names in a sentence: `case, metric and profile`.
fn join_names(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// One table: scores of means, and under them those of standard deviations.
fn table(title: &str, rows: &[AverageRow<'_>], style: Style) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let columns = ["n", "min", "q1", "median", "q3", "max", "negatives", "positives"];
    let mut table = Table::new(&figure_columns("", &columns));
    for row in rows {
        table.heading(&readable_id(&row.id.to_string()));
        for (name, of) in [("mean", row.means), ("stddev", row.stddevs)] {
            let count = of.map_or(0, |distribution| distribution.count).to_string();
            table.row(figure_row(format!("  {name}"), std::iter::once(count).chain(format_distribution(of))));
        }
    }
    style.heading(title) + &table.draw(style)
}

fn format_distribution(distribution: Option<Distribution>) -> [String; 7] {
    let Some(of) = distribution else { return std::array::from_fn(|_| NO_VALUE.to_owned()) };
    [of.min, of.first_quartile, of.median, of.third_quartile, of.max, of.negatives, of.positives].map(format_score)
}
