//! Tests of the claims of the page on statistics about the stopping rule.

#[path = "../../examples/coverage/alternatives.rs"]
mod alternatives;
#[path = "../../examples/coverage/simulate.rs"]
mod simulate;
#[path = "../../examples/coverage/table.rs"]
mod table;

use crate::{page, populations};
use std::sync::LazyLock;

use populations::Population;
use simulate::{Limits, SPREADS, Source, simulate_fixed};
use table::Row;

/// The rows of one spread, which are a fifth of all: each has its own random numbers.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| table::simulate_rows(&[0.03]));

#[test]
#[ignore = "simulates for a minute: make test-long"]
fn soak_every_spread_keeps_the_claims_of_the_page() {
    let rows = table::simulate_rows(&SPREADS);
    intervals_keep_their_confidence(&rows);
    widened_intervals_cover_nearly_as_often(&rows);
    strong_dependence_is_found(&rows);
    dependence_is_seldom_found(&rows);
    page::assert_shown("coverage", &table::tables(&rows));
}

#[test]
fn the_interval_keeps_its_confidence_under_the_stopping_rule() {
    intervals_keep_their_confidence(&ROWS);
}

fn intervals_keep_their_confidence(rows: &[Row]) {
    for Row { source, spread, outcome, limits } in rows {
        let minimum = match source {
            Source::Autoregressive(_) | Source::Contaminated(_) | Source::Population(Population::Drifting) => continue,
            // Half of all samples are on either side of the median and none near it: few samples can agree by chance.
            Source::Population(Population::Even) => 0.90,
            Source::Population(_) => 0.95,
        };
        let coverage = outcome.coverage();
        assert!(coverage >= minimum, "{} at {spread}, at least {}: {coverage}", source.name(), limits.min);
    }
}

#[test]
fn the_widened_interval_covers_nearly_as_often_if_samples_correlate_by_half() {
    widened_intervals_cover_nearly_as_often(&ROWS);
}

fn widened_intervals_cover_nearly_as_often(rows: &[Row]) {
    for row in rows.iter().filter(|row| row.source == Source::Autoregressive(0.5)) {
        let minimum = if row.limits == Limits::DEFAULT { 0.87 } else { 0.9 };
        let coverage = row.outcome.coverage();
        assert!(coverage >= minimum, "at {}, at least {}: {coverage}", row.spread, row.limits.min);
    }
}

#[test]
fn strong_dependence_is_found_from_20_samples_on_and_otherwise_not_ruled_out() {
    strong_dependence_is_found(&ROWS);
}

fn strong_dependence_is_found(rows: &[Row]) {
    for row in rows.iter().filter(|row| row.source == Source::Autoregressive(0.9)) {
        let outcome = &row.outcome;
        let found = outcome.dependence_rate_of_checkable();
        assert!(outcome.checkable_cells() < 50 || found >= 0.95, "at {}: {found}", row.spread);
        let missed = 1.0 - outcome.dependence_rate() - outcome.unchecked_rate();
        assert!(missed < 0.05, "at {}: {missed}", row.spread);
    }
}

#[test]
fn strong_dependence_is_found_in_cells_with_exactly_as_many_samples() {
    for count in [20, 24, 25] {
        let found = simulate_fixed(Source::Autoregressive(0.9), count).dependence_rate();
        assert!(found >= 0.95, "{count} samples: {found}");
    }
}

#[test]
fn outliers_hardly_cause_dependence_and_seldom_hide_it() {
    for (count, significance) in [(12, 0.01), (20, 0.05), (30, 0.01)] {
        let found = simulate_fixed(Source::Contaminated(0.0), count).dependence_rate();
        assert!(found < 1.5 * significance, "{count} samples: {found}");
    }
    let found = simulate_fixed(Source::Contaminated(0.9), 30).dependence_rate();
    assert!(found > 0.75, "{found}");
}

#[test]
fn dependence_is_seldom_found_in_independent_samples() {
    dependence_is_seldom_found(&ROWS);
}

fn dependence_is_seldom_found(rows: &[Row]) {
    for row in rows {
        if matches!(row.source, Source::Population(population) if population != Population::Drifting) {
            let found = row.outcome.dependence_rate();
            assert!(found < 0.03, "{} at {}: {found}", row.source.name(), row.spread);
        }
    }
}

#[test]
fn the_page_shows_the_simulated_rows() {
    page::assert_rows_shown("coverage", ROWS.iter().map(Row::line));
}
