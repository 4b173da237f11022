//! Tests of the claims of the page on statistics about comparing two sides.

#[path = "../../examples/comparing/runs.rs"]
mod runs;
#[path = "../../examples/comparing/samples.rs"]
mod samples;
#[path = "../../examples/comparing/table.rs"]
mod table;

use crate::{page, populations};
use std::sync::LazyLock;

use populations::Population;

static RUNS: LazyLock<Vec<runs::Row>> = LazyLock::new(runs::simulate);
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
fn noise_between_runs_raises_no_alarm_unless_runs_are_pooled() {
    for runs::Row { count, pooled, medians, hierarchical } in RUNS.iter() {
        assert!(pooled.0 > 0.3, "{count}");
        let (alarms, covers) = if *count < 5 { medians } else { hierarchical };
        assert!(*alarms <= 0.07, "{count}: {alarms}");
        assert!(covers.is_none_or(|covers| covers >= 0.93), "{count}: {covers:?}");
    }
}

#[test]
fn the_page_shows_the_simulated_tables() {
    page::assert_shown("comparing", &table::tables(&ROWS, &RUNS));
}
