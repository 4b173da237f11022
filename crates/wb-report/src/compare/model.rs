//! What a model says is normal.

use wb_compare::Model;
use wb_model::counted;

use super::figures::{readable, value};
use crate::text::{Style, Table, heads_of, named};

/// A line for each check: the average that the model was made of, and between which values nothing is out of the
/// ordinary.
pub fn model_text(model: &Model, style: Style) -> String {
    let mut table = Table::new(&heads_of("", &["average", "from", "to", "score of a value"]));
    for (id, entry) in &model.entries {
        let range = model.tolerance.and_then(|tolerance| entry.range(tolerance));
        let equation = format!("{:.6e} · value {:+.6}", entry.equation.slope, entry.equation.intercept);
        let figures =
            [value(entry.raw), value(range.map(|range| range.0)), value(range.map(|range| range.1)), equation];
        table.row(named(readable(id), figures));
    }
    let tolerance = model.tolerance.map_or("not known".to_owned(), |tolerance| format!("±{tolerance} %"));
    let about =
        format!("{}; the ends of each range have a score of {tolerance}", counted(model.entries.len(), "check"));
    table.draw(style) + &style.indented(0, &about)
}
