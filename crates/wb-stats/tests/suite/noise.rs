//! What the page on statistics claims of single runs and a model of their noise.

#[path = "../../examples/noise/simulate.rs"]
mod simulate;
#[path = "../../examples/noise/table.rs"]
mod table;

use crate::{page, populations};
use std::sync::LazyLock;

use populations::Population;
use table::Simulated;

static SIMULATED: LazyLock<Simulated> = LazyLock::new(table::simulated);

/// Of 2,000 comparisons with 5 % false alarms, a share above this comes once in ten thousand times.
const ALARMS: f64 = 0.068;

#[test]
fn from_six_runs_on_equal_runs_are_seldom_said_to_differ() {
    for row in SIMULATED.rows.iter().filter(|row| row.runs >= 6) {
        let name = row.population.name();
        let most = if row.population == Population::LogNormal { 0.08 } else { ALARMS };
        assert!(row.single.alarms <= most, "{name} {}: {}", row.runs, row.single.alarms);
        let most = if row.population == Population::Uneven { 0.08 } else { ALARMS };
        assert!(row.samples.alarms <= most, "{name} {}, samples: {}", row.runs, row.samples.alarms);
        // What drifts on from one side to the other is taken for a difference.
        let most = if row.population == Population::Drifting { 0.12 } else { ALARMS };
        assert!(row.three.alarms <= most, "{name} {}, three a side: {}", row.runs, row.three.alarms);
    }
}

#[test]
fn other_numbers_of_samples_than_the_models_raise_no_alarm() {
    for ((model, side), outcome) in &SIMULATED.sizes {
        assert!(outcome.alarms <= ALARMS, "{model} {side}: {}", outcome.alarms);
    }
}

#[test]
fn a_model_sees_modes_where_there_are_some() {
    for row in &SIMULATED.rows {
        let seen = row.samples.modes;
        match row.population {
            Population::Uneven | Population::Even if row.runs >= 15 => assert!(seen > 0.7, "{}: {seen}", row.runs),
            Population::Uneven | Population::Even => {}
            other => assert!(seen <= 0.05, "{} {}: {seen}", other.name(), row.runs),
        }
    }
}

#[test]
fn the_page_shows_the_tables_as_they_are_simulated() {
    page::assert_shown("noise", &table::tables(&SIMULATED));
}
