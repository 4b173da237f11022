//! Tests of the claims of the page on statistics about averages of cells that were measured in the same rounds.

#[path = "../../examples/averages/simulate.rs"]
mod simulate;
#[path = "../../examples/averages/table.rs"]
mod table;

use crate::{page, populations};
use std::sync::LazyLock;

use populations::Population;
use simulate::SHAPES;
use table::Row;

/// The rows of one population: each row has its own random numbers.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| table::simulate(&SHAPES[..1]));

#[test]
#[ignore = "simulates for a minute: make test-long"]
fn soak_averages_of_every_population_keep_the_claims_of_the_page() {
    let rows = table::simulate(&SHAPES);
    averages_cover_whatever_rounds_have_in_common(&rows);
    page::assert_shown("averages", &table::table(&rows));
}

#[test]
fn the_interval_of_an_average_covers_whatever_rounds_have_in_common() {
    averages_cover_whatever_rounds_have_in_common(&ROWS);
}

fn averages_cover_whatever_rounds_have_in_common(rows: &[Row]) {
    for Row { shape, limits, outcomes } in rows {
        // Cells of a coarse clock stop on the same wrong tick.
        let minimum = if shape.0 == Population::Coarse && limits.0 < limits.1 { 0.88 } else { 0.95 };
        for (outcome, correlation) in outcomes.iter().zip(table::CORRELATIONS) {
            let (name, covered) = (shape.0.name(), outcome.covered);
            assert!(covered >= minimum, "{name}, {limits:?} samples, correlation {correlation}: {covered}");
        }
    }
}

#[test]
fn intervals_are_little_wider_where_rounds_have_nothing_in_common() {
    for Row { limits, outcomes, .. } in ROWS.iter() {
        assert!(outcomes[0].relative_width < 1.25, "{limits:?} samples: {}", outcomes[0].relative_width);
    }
}

#[test]
fn the_page_shows_the_simulated_rows() {
    page::assert_rows_shown("averages", ROWS.iter().map(Row::line));
}
