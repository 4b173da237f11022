//! Tests of the claims of the page on statistics about single runs and a model of their noise.

#[path = "../../examples/noise/simulate.rs"]
mod simulate;
#[path = "../../examples/noise/table.rs"]
mod table;

use crate::{page, populations};
use std::sync::LazyLock;

use populations::Population;
use table::Simulation;

static SIMULATED: LazyLock<Simulation> = LazyLock::new(table::simulate);

/// With a true rate of 5 % false alarms, 2,000 comparisons exceed this rate once in ten thousand times.
const ALARMS: f64 = 0.068;

#[test]
fn with_six_runs_or_more_equal_runs_seldom_raise_a_false_alarm() {
    for row in SIMULATED.rows.iter().filter(|row| row.runs >= 6) {
        let name = row.population.name();
        let limit = if row.population == Population::LogNormal { 0.08 } else { ALARMS };
        assert!(row.single.alarms <= limit, "{name} {}: {}", row.runs, row.single.alarms);
        let limit = if row.population == Population::Uneven { 0.08 } else { ALARMS };
        assert!(row.samples.alarms <= limit, "{name} {}, samples: {}", row.runs, row.samples.alarms);
        // A drift from one side to the other is detected as a difference.
        let limit = if row.population == Population::Drifting { 0.12 } else { ALARMS };
        assert!(row.three.alarms <= limit, "{name} {}, three a side: {}", row.runs, row.three.alarms);
    }
}

#[test]
fn numbers_of_samples_that_differ_from_the_models_raise_no_alarm() {
    for ((model, side), outcome) in &SIMULATED.sizes {
        assert!(outcome.alarms <= ALARMS, "{model} {side}: {}", outcome.alarms);
    }
}

#[test]
fn a_model_detects_modes_only_where_they_exist() {
    for row in &SIMULATED.rows {
        let detected = row.samples.modes;
        match row.population {
            Population::Uneven | Population::Even if row.runs >= 15 => {
                assert!(detected > 0.7, "{}: {detected}", row.runs)
            }
            Population::Uneven | Population::Even => {}
            other => assert!(detected <= 0.05, "{} {}: {detected}", other.name(), row.runs),
        }
    }
}

#[test]
fn the_page_shows_the_simulated_tables() {
    page::assert_shown("noise", &table::tables(&SIMULATED));
}
