//! Tables of averages and score distributions.

use wb_compare::run_perf::tolerance::average::Average;
use wb_compare::run_perf::tolerance::averages::{Distribution, SummaryRow};
use wb_model::pluralize;
use wb_results::comparison::{CheckResult, ComparisonResult, Statistic};

use super::figures::{readable_id, side_figures};
use super::{AveragesTable, ScoreDistribution};
use crate::phrasing::{NO_VALUE, join_names};
use crate::text::{Style, Table, figure_columns, figure_row};

/// Renders the tables; those with the same figures are merged, under all their names and with the rows of the first.
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
            let over = join_names(names);
            if is_geometric(rows.iter()) {
                table(&format!("averages by {over}: {GEOMETRIC_AVERAGE}"), INVERSION, rows, style)
            } else {
                table(&format!("averages by {over}, in percent, positive is better"), "", rows, style)
            }
        })
        .collect()
}

fn is_geometric<'a>(rows: impl Iterator<Item = &'a SummaryRow<'a>>) -> bool {
    let mut kinds = rows.filter_map(|row| row.means).map(|means| means.average).peekable();
    kinds.peek().is_some() && kinds.all(|kind| kind == Average::Geometric)
}

pub(super) const GEOMETRIC_AVERAGE: &str = "geometric means of speed in percent";

/// How metrics with a lower better direction are treated.
pub(super) const INVERSION: &str = "higher is better: times, and whatever else is better if lower, are inverted";

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

/// Names the primary means without a score in any table: a difference from 0 has no percentage, and one to 0 or below
/// no logarithm.
pub(super) fn render_excluded(outcome: &ComparisonResult, tables: &[AveragesTable<'_>], style: Style) -> String {
    let rows = tables.iter().flat_map(|(_, rows)| rows);
    let is_geometric = is_geometric(rows);
    let has_no_logarithm = |check: &CheckResult| is_geometric && check.score.is_some_and(|score| score <= -100.0);
    let is_excluded = |check: &&CheckResult| {
        let is_primary_mean = check.primary && check.statistic == Statistic::Mean && check.status.is_compared();
        is_primary_mean && (check.score.is_none() || has_no_logarithm(check))
    };
    let checks: Vec<&CheckResult> = outcome.checks.iter().filter(is_excluded).collect();
    if checks.is_empty() {
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
    let infinite = checks.iter().filter(|check| check.score.is_none()).count();
    let from_zero = "a difference from 0 has no percentage";
    let (scores, reason) = match infinite {
        0 => ("score", "a difference to 0 or below has no part in a geometric mean".to_owned()),
        all if all == checks.len() => ("infinite score", from_zero.to_owned()),
        _ => ("score", format!("{from_zero}, and one to 0 or below has no part in a geometric mean")),
    };
    let scores = pluralize(checks.len(), scores);
    let are = if checks.len() == 1 { "is" } else { "are" };
    let text = format!("{scores} {are} in none of these figures, since {reason}: {}{more}", named.join(", "));
    style.remark("note", &text)
}

const MAX_NAMED: usize = 5;

/// Formats a score with two decimals, and zero without a sign.
fn format_score(score: f64) -> String {
    format!("{:.2}", score + 0.0)
}

/// Renders one table, with rows for scores of means and of standard deviations.
fn table(title: &str, note: &str, rows: &[SummaryRow<'_>], style: Style) -> String {
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
    style.heading(title) + &style.indent(2, note) + &table.draw(style)
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
