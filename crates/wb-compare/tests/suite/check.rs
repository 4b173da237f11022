//! The claims of `docs/statistics.md` about the verdict on a check.

#[path = "../../examples/check/simulation.rs"]
mod simulation;
#[path = "../../examples/check/table.rs"]
mod table;

use std::sync::LazyLock;

use crate::{page, populations};

use simulation::{DependentRow, Row};

static RUNS: LazyLock<Vec<Row>> = LazyLock::new(simulation::of_runs);
static SHAPES: LazyLock<Vec<Row>> = LazyLock::new(simulation::of_shapes);
static DEPENDENCE: LazyLock<Vec<DependentRow>> = LazyLock::new(simulation::of_dependence);

/// With a true rate of 2.5 %, 1,000 comparisons exceed this rate once in ten thousand times.
const ALARMS: f64 = 0.047;

#[test]
fn single_runs_raise_as_many_false_alarms_as_the_assumed_noise_permits() {
    for (between, low, high) in [(0.0, 0.0, 0.0), (0.02, 0.0, 0.004), (0.05, 0.01, ALARMS), (0.1, 0.12, 0.2)] {
        let row = RUNS.iter().find(|row| row.between == between && row.runs == 1).unwrap();
        assert!((low..=high).contains(&row.regressed), "{between}: {}", row.regressed);
    }
}

#[test]
fn runs_that_differ_as_assumed_or_less_are_seldom_regressed_or_improved() {
    for row in RUNS.iter().filter(|row| row.between <= 0.05) {
        assert!(row.regressed <= ALARMS && row.improved <= ALARMS, "{} {}", row.between, row.runs);
    }
}

#[test]
fn more_runs_find_more() {
    for change in 0..simulation::CHANGES.len() {
        for runs in RUNS.chunks(4).filter(|runs| runs[0].between <= 0.05) {
            let found: Vec<f64> = runs.iter().map(|row| row.found[change]).collect();
            assert!(found.is_sorted(), "{change}: {found:?}");
        }
    }
}

#[test]
fn samples_of_no_shape_are_regressed_without_a_change_if_runs_do_not_differ() {
    for row in SHAPES.iter().filter(|row| row.between == 0.0) {
        assert!(row.regressed <= 0.015 && row.improved <= 0.015, "{} {}", row.shape.name(), row.samples);
    }
}

#[test]
fn dependent_samples_that_differ_by_the_threshold_are_seldom_equivalent() {
    let rows = |correlation: f64| DEPENDENCE.iter().filter(move |row| row.correlation == correlation);
    for row in rows(0.0).chain(rows(0.5)) {
        assert!(row.unequal_equivalent <= 0.06, "{} {}", row.correlation, row.samples);
    }
    // Ten samples show too little of their dependence.
    for row in rows(0.9).filter(|row| row.samples == 36) {
        assert!(row.unequal_equivalent <= 0.04 && row.unequal_if_independent > 0.1, "{}", row.spread);
    }
    for row in DEPENDENCE.iter().filter(|row| row.correlation == 0.9 && row.samples == 36 && row.spread == 0.05) {
        assert!(
            row.equivalent < 0.02 && row.equal_if_independent > 0.2,
            "{} {}",
            row.equivalent,
            row.equal_if_independent
        );
    }
}

#[test]
fn the_page_shows_the_simulated_tables() {
    page::assert_shown("check", &table::tables(&RUNS, &SHAPES, &DEPENDENCE));
}
