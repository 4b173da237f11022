//! Tests of the claims of the page on statistics about comparing two sides.

#[path = "../../examples/comparing/samples.rs"]
mod samples;
#[path = "../../examples/comparing/table.rs"]
mod table;

use crate::{page, populations};
use std::sync::LazyLock;

use page::Rows;
use populations::Population;

static SOME: LazyLock<table::Simulation> = LazyLock::new(|| table::simulate(Rows::Every(4)));

/// With a true rate of 5 % false alarms, 2,000 comparisons exceed this rate once in ten thousand times.
const ALARMS: f64 = 0.068;

#[test]
#[ignore = "simulates for half a minute: make test-long"]
fn soak_every_row_keeps_the_claims_of_the_page() {
    let all = table::simulate(Rows::All);
    equal_sides_raise_few_alarms(&all);
    unlike_sides_raise_few_alarms(&all);
    page::assert_shown("comparing", &table::table(&all));
}

#[test]
fn equal_sides_seldom_raise_a_false_alarm() {
    equal_sides_raise_few_alarms(&SOME);
}

fn equal_sides_raise_few_alarms(rows: &table::Simulation) {
    for (population, count, outcome) in &rows.alike {
        assert!(outcome.false_alarms <= ALARMS, "{} {count}: {}", population.name(), outcome.false_alarms);
        let minimum = if *population == Population::Coarse { 0.89 } else { 0.932 };
        assert!(outcome.covered.is_none_or(|covered| covered >= minimum), "{} {count}", population.name());
    }
}

// Wilcoxon's test alone called equal medians of sides with different spreads different in 18 %.
#[test]
fn sides_that_vary_differently_seldom_raise_a_false_alarm() {
    unlike_sides_raise_few_alarms(&SOME);
}

/// Of equal medians: with Wilcoxon's test alone up to a fifth of the comparisons are false alarms.
fn unlike_sides_raise_few_alarms(rows: &table::Simulation) {
    for (population, counts, spreads, outcome) in &rows.unlike {
        let kind = format!("{} {counts:?} {spreads:?}", population.name());
        assert!(outcome.false_alarms <= ALARMS + 0.01, "{kind}: {}", outcome.false_alarms);
        assert!(outcome.covered.is_some_and(|covered| covered >= 0.922), "{kind}: {:?}", outcome.covered);
    }
}

#[test]
fn the_page_shows_the_simulated_rows() {
    page::assert_rows_shown("comparing", table::table(&SOME).lines().map(str::to_owned));
}
