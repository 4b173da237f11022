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
use simulate::{Limits, Source, simulate_fixed};
use table::Row;

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(table::simulate_rows);

#[test]
fn the_interval_keeps_its_confidence_under_the_stopping_rule() {
    for Row { source, spread, outcome, limits } in ROWS.iter() {
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
    for row in ROWS.iter().filter(|row| row.source == Source::Autoregressive(0.5)) {
        let minimum = if row.limits == Limits::DEFAULT { 0.87 } else { 0.9 };
        let coverage = row.outcome.coverage();
        assert!(coverage >= minimum, "at {}, at least {}: {coverage}", row.spread, row.limits.min);
    }
}

#[test]
fn strong_dependence_is_found_from_20_samples_on_and_otherwise_not_ruled_out() {
    for row in ROWS.iter().filter(|row| row.source == Source::Autoregressive(0.9)) {
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
    for row in ROWS.iter() {
        if matches!(row.source, Source::Population(population) if population != Population::Drifting) {
            let found = row.outcome.dependence_rate();
            assert!(found < 0.03, "{} at {}: {found}", row.source.name(), row.spread);
        }
    }
}

#[test]
fn the_page_shows_the_simulated_tables() {
    page::assert_shown("coverage", &table::tables(&ROWS));
}
