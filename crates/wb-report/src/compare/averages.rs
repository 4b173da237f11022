//! The tables of averages.

use wb_compare::tolerance::averages::{AverageRow, Distribution};

use crate::text::{Style, Table, heads_of, named};
use crate::words::NONE;

/// One table: scores of means, and under them those of standard deviations.
pub(super) fn table(title: &str, rows: &[AverageRow<'_>], style: Style) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let columns = ["n", "min", "q1", "median", "q3", "max", "negatives", "positives"];
    let mut table = Table::new(&heads_of("", &columns));
    for row in rows {
        table.heading(&row.id.to_string());
        for (name, of) in [("mean", row.means), ("stddev", row.stddevs)] {
            let count = of.map_or(0, |distribution| distribution.count).to_string();
            table.row(named(format!("  {name}"), std::iter::once(count).chain(figures(of))));
        }
    }
    style.section(title) + &table.draw(style)
}

fn figures(distribution: Option<Distribution>) -> [String; 7] {
    let Some(of) = distribution else { return std::array::from_fn(|_| NONE.to_owned()) };
    [of.min, of.first_quartile, of.median, of.third_quartile, of.max, of.negatives, of.positives]
        // A sum of nothing is zero without a sign.
        .map(|score| format!("{:.2}", score + 0.0))
}
