//! Tests of the claims of the page on statistics about single runs and a model of their noise.

#[path = "../../examples/noise/simulate.rs"]
mod simulate;
#[path = "../../examples/noise/table.rs"]
mod table;

use crate::{page, populations};
use std::sync::LazyLock;

use page::Rows;
use populations::Population;
use table::Simulation;

static SOME: LazyLock<Simulation> = LazyLock::new(|| table::simulate(Rows::Every(5)));

/// With a true rate of 5 % false alarms, 2,000 comparisons exceed this rate once in ten thousand times.
const ALARMS: f64 = 0.068;

#[test]
#[ignore = "simulates for half a minute: make test-long"]
fn soak_every_row_keeps_the_claims_of_the_page() {
    let all = table::simulate(Rows::All);
    equal_runs_raise_few_alarms(&all);
    unlike_numbers_of_samples_raise_few_alarms(&all);
    modes_are_detected_where_they_exist(&all);
    page::assert_shown("noise", &table::tables(&all));
}

#[test]
fn with_six_runs_or_more_equal_runs_seldom_raise_a_false_alarm() {
    equal_runs_raise_few_alarms(&SOME);
}

fn equal_runs_raise_few_alarms(simulated: &Simulation) {
    for row in simulated.rows.iter().filter(|row| row.runs >= 6) {
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
    unlike_numbers_of_samples_raise_few_alarms(&SOME);
}

fn unlike_numbers_of_samples_raise_few_alarms(simulated: &Simulation) {
    for ((model, side), outcome) in &simulated.sizes {
        assert!(outcome.alarms <= ALARMS, "{model} {side}: {}", outcome.alarms);
    }
}

#[test]
fn a_model_detects_modes_only_where_they_exist() {
    modes_are_detected_where_they_exist(&SOME);
}

fn modes_are_detected_where_they_exist(simulated: &Simulation) {
    for row in &simulated.rows {
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
fn the_page_shows_the_simulated_rows() {
    page::assert_rows_shown("noise", table::tables(&SOME).lines().map(str::to_owned));
}
