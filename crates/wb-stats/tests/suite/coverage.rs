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
use table::Row;

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| table::simulate(simulate::simulate_rule));

#[test]
fn the_interval_keeps_its_confidence_under_the_stopping_rule() {
    for Row { population, spread, outcome } in ROWS.iter() {
        let minimum = match population {
            Population::Drifting => continue,
            // Half of all samples are on either side of the median and none near it: few samples can agree by chance.
            Population::Even => 0.90,
            _ => 0.95,
        };
        let coverage = outcome.coverage();
        assert!(coverage >= minimum, "{} at {spread}: {coverage}", population.name());
    }
}

#[test]
fn the_page_shows_the_simulated_tables() {
    page::assert_shown("coverage", &table::tables(&ROWS));
}
