//! Renders the normal ranges of a model.

use wb_compare::ToleranceModel;
use wb_model::pluralize;

use super::figures::{format_value, readable_id};
use crate::text::{Style, Table, figure_columns, figure_row};

/// Renders a line for each check: the average of the model's data, and the range of normal values.
pub fn model_text(model: &ToleranceModel, style: Style) -> String {
    let mut table = Table::new(&figure_columns("", &["average", "from", "to", "score of a value"]));
    for (id, entry) in &model.entries {
        let range = model.tolerance.and_then(|tolerance| entry.equation.range(tolerance));
        let equation = format!("{:.6e} · value {:+.6}", entry.equation.slope, entry.equation.intercept);
        let figures = [
            format_value(entry.average),
            format_value(range.map(|range| range.0)),
            format_value(range.map(|range| range.1)),
            equation,
        ];
        table.row(figure_row(readable_id(id), figures));
    }
    let tolerance = model.tolerance.map_or("unknown".to_owned(), |tolerance| format!("±{tolerance} %"));
    let about =
        format!("{}; the ends of each range have a score of {tolerance}", pluralize(model.entries.len(), "check"));
    table.draw(style) + &style.indent(0, &about)
}
