//! Tables of averages and score distributions.

use wb_compare::comparison::CheckResult;
use wb_compare::run_perf::tolerance::average::Average;
use wb_compare::run_perf::tolerance::averages::{Distribution, SummaryRow};
use wb_compare::{ComparisonResult, Statistic};
use wb_model::pluralize;

use super::figures::{readable_id, side_figures};
use super::{AveragesTable, ScoreDistribution};
use crate::phrasing::{NO_VALUE, join_names};
use crate::text::{Style, Table, figure_columns, figure_row};

/// Renders the tables; those with the same figures are merged, with the identifiers of the first.
pub(super) fn render_averages(all: &[AveragesTable<'_>], style: Style) -> String {
    let mut distinct: Vec<(Vec<&str>, &[SummaryRow<'_>])> = Vec::new();
    for (over, rows) in all {
        match distinct.iter_mut().find(|(_, existing)| has_same_figures(existing, rows)) {
            Some((names, _)) => names.push(over),
            None => distinct.push((vec![over], rows)),
        }
    }
    distinct
        .iter()
        .map(|(names, rows)| {
            let means = rows.iter().filter_map(|row| row.means);
            let of = describe_average(means.map(|means| means.average).collect());
            table(&format!("averages by {}, {of}", join_names(names)), rows, style)
        })
        .collect()
}

/// What averages are of, and which direction is better. Without any mean it is that of standard deviations.
pub(super) fn describe_average(kinds: Vec<Average>) -> &'static str {
    match kinds.contains(&Average::Arithmetic) || kinds.is_empty() {
        true => "in percent, positive is better",
        false => GEOMETRIC_AVERAGE,
    }
}

/// What geometric means are of.
pub(super) const GEOMETRIC_AVERAGE: &str =
    "geometric means of speed in percent: higher is better; times and whatever else is better if lower are inverted";

fn has_same_figures(left: &[SummaryRow<'_>], right: &[SummaryRow<'_>]) -> bool {
    let figures = |row: &SummaryRow<'_>| (row.means, row.stddevs);
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| figures(left) == figures(right))
}

/// Renders the distributions of the scores of primary means, of all and by verdict.
pub(super) fn render_scores(all: &[ScoreDistribution<'_>], style: Style) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&figure_columns("", &["n", "median", "min", "max", "sum", "mean"]));
    for (name, distribution) in all {
        let count = distribution.map_or(0, |distribution| distribution.count);
        let figures = match distribution {
            None => std::array::from_fn::<_, 5, _>(|_| NO_VALUE.to_owned()),
            Some(scores) => {
                [scores.median, scores.min, scores.max, scores.mean * count as f64, scores.mean].map(format_score)
            }
        };
        table.row(figure_row(format!("  {name}"), std::iter::once(count.to_string()).chain(figures)));
    }
    style.heading("scores of primary means by tolerance, in percent, positive is better") + &table.draw(style)
}

/// Names the primary means whose score is infinite, which no table of scores has: a difference from 0 has no percentage.
/// Nothing without such `tables`.
pub(super) fn render_infinite(outcome: &ComparisonResult, tables: &str, style: Style) -> String {
    let is_infinite = |check: &&CheckResult| {
        check.primary && check.statistic == Statistic::Mean && check.status.is_compared() && check.score.is_none()
    };
    let checks: Vec<&CheckResult> = outcome.checks.iter().filter(is_infinite).collect();
    if checks.is_empty() || tables.is_empty() {
        return String::new();
    }
    let name = |check: &&CheckResult| {
        let [reference, judged] = side_figures(check);
        format!("{} ({reference} → {judged}, {})", readable_id(&check.id), check.final_verdict.as_str())
    };
    let named: Vec<String> = checks.iter().take(MAX_NAMED).map(name).collect();
    let more = match checks.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let scores = pluralize(checks.len(), "infinite score");
    let are = if checks.len() == 1 { "is" } else { "are" };
    let text = format!(
        "{scores} {are} in none of these figures, since a difference from 0 has no percentage: {}{more}",
        named.join(", ")
    );
    style.remark("note", &text)
}

/// The maximum number of checks with an infinite score that are named.
const MAX_NAMED: usize = 5;

/// Formats a score with two decimals, and zero without a sign.
fn format_score(score: f64) -> String {
    format!("{:.2}", score + 0.0)
}

/// Renders one table, with rows for scores of means and of standard deviations.
fn table(title: &str, rows: &[SummaryRow<'_>], style: Style) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let columns = ["n", "min", "q1", "median", "q3", "max", "negatives", "positives"];
    let mut table = Table::new(&figure_columns("", &columns));
    for row in rows {
        table.heading(&readable_id(&row.pattern.to_string()));
        for (name, distribution) in [("mean", row.means), ("stddev (points)", row.stddevs)] {
            let count = distribution.map_or(0, |distribution| distribution.count).to_string();
            table.row(figure_row(format!("  {name}"), std::iter::once(count).chain(format_distribution(distribution))));
        }
    }
    style.heading(title) + &table.draw(style)
}

fn format_distribution(distribution: Option<Distribution>) -> [String; 7] {
    let Some(scores) = distribution else { return std::array::from_fn(|_| NO_VALUE.to_owned()) };
    [
        scores.min,
        scores.first_quartile,
        scores.median,
        scores.third_quartile,
        scores.max,
        scores.negative_contribution,
        scores.positive_contribution,
    ]
    .map(format_score)
}
