//! Renders nested latency tables: percentiles of latency in rows, cumulative and over time intervals in columns.

use wb_model::Unit;

use super::Style;
use super::table::{Table, figure_columns, figure_row};
use crate::phrasing;

/// Renders rows of a percentile, its cumulative value and its percentiles over the intervals, all in nanoseconds.
pub(crate) fn nested_latency_table(
    over: &[f64],
    rows: impl Iterator<Item = (f64, f64, Vec<f64>)>,
    style: Style,
) -> String {
    let ns = Unit::new("ns");
    let heads: Vec<String> = over.iter().map(|percentile| phrasing::percentile_label(*percentile)).collect();
    let columns: Vec<&str> = std::iter::once("all").chain(heads.iter().map(String::as_str)).collect();
    let mut table = Table::new(&figure_columns("  percentile", &columns));
    for (percentile, cumulative, over) in rows {
        let figures: Vec<f64> = std::iter::once(cumulative).chain(over).collect();
        let common = ns.common(figures.iter().copied());
        table.row(figure_row(format!("  p{percentile}"), figures.iter().map(|value| common.format(*value))));
    }
    table.draw(style)
}
