//! Tests of the claims of the page on statistics about comparing two sides.

#[path = "../../examples/comparing/samples.rs"]
mod samples;
#[path = "../../examples/comparing/table.rs"]
mod table;

use crate::{page, populations};
use std::sync::LazyLock;

use populations::Population;

static ROWS: LazyLock<Vec<(Population, usize, samples::Outcome)>> = LazyLock::new(table::simulate);

/// With a true rate of 5 % false alarms, 2,000 comparisons exceed this rate once in ten thousand times.
const ALARMS: f64 = 0.068;

#[test]
fn equal_sides_seldom_raise_a_false_alarm() {
    for (population, count, outcome) in ROWS.iter() {
        assert!(outcome.false_alarms <= ALARMS, "{} {count}: {}", population.name(), outcome.false_alarms);
        let minimum = if *population == Population::Coarse { 0.89 } else { 0.932 };
        assert!(outcome.covered.is_none_or(|covered| covered >= minimum), "{} {count}", population.name());
    }
}

#[test]
fn the_page_shows_the_simulated_table() {
    page::assert_shown("comparing", &table::table(&ROWS));
}
