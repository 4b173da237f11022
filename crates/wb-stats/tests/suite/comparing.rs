//! Tests of the claims of the page on statistics about comparing two sides.

#[path = "../../examples/comparing/samples.rs"]
mod samples;
#[path = "../../examples/comparing/table.rs"]
mod table;

use crate::{page, populations};
use std::sync::LazyLock;

use populations::Population;

static ROWS: LazyLock<table::Simulation> = LazyLock::new(table::simulate);

/// With a true rate of 5 % false alarms, 2,000 comparisons exceed this rate once in ten thousand times.
const ALARMS: f64 = 0.068;

#[test]
fn equal_sides_seldom_raise_a_false_alarm() {
    for (population, count, outcome) in &ROWS.alike {
        assert!(outcome.false_alarms <= ALARMS, "{} {count}: {}", population.name(), outcome.false_alarms);
        let minimum = if *population == Population::Coarse { 0.89 } else { 0.932 };
        assert!(outcome.covered.is_none_or(|covered| covered >= minimum), "{} {count}", population.name());
    }
}

/// Of equal medians: with Wilcoxon's test alone up to a fifth of the comparisons are false alarms.
#[test]
fn sides_that_vary_differently_seldom_raise_a_false_alarm() {
    for (population, counts, spreads, outcome) in &ROWS.unlike {
        let kind = format!("{} {counts:?} {spreads:?}", population.name());
        assert!(outcome.false_alarms <= ALARMS + 0.01, "{kind}: {}", outcome.false_alarms);
        assert!(outcome.covered.is_some_and(|covered| covered >= 0.922), "{kind}: {:?}", outcome.covered);
    }
}

#[test]
fn the_page_shows_the_simulated_table() {
    page::assert_shown("comparing", &table::table(&ROWS));
}
