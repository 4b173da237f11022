//! Tests of the claims of the page on statistics about verdicts: an assumed noise between runs, and the tests of
//! location, mean and tail.

#[path = "../../examples/verdict/runs.rs"]
mod runs;
#[path = "../../examples/verdict/shapes.rs"]
mod shapes;
#[path = "../../examples/verdict/table.rs"]
mod table;

use crate::{page, populations};
use std::sync::LazyLock;

use page::Rows;

/// Of each noise between runs, the row of single runs.
static SINGLE_RUNS: LazyLock<Vec<runs::Row>> = LazyLock::new(|| runs::simulate(Rows::Every(4)));
static SOME_SHAPES: LazyLock<shapes::Simulation> = LazyLock::new(|| shapes::simulate(Rows::Every(4)));

/// With a true rate of 5 % false alarms, 4,000 comparisons exceed this rate once in ten thousand times.
const ALARMS: f64 = 0.063;

fn row(rows: &[runs::Row], between: f64, count: usize) -> &runs::Row {
    rows.iter().find(|row| row.between == between && row.count == count).unwrap()
}

#[test]
#[ignore = "simulates for half a minute: make test-long"]
fn soak_every_row_keeps_the_claims_of_the_page() {
    let (runs, shapes) = (runs::simulate(Rows::All), shapes::simulate(Rows::All));
    more_runs_find_more_and_contradict_a_noise_that_is_too_low(&runs);
    without_any_noise_between_runs_false_alarms_stay_rare(&runs);
    equal_populations_raise_few_alarms(&shapes);
    changes_of_shape_are_found(&shapes);
    page::assert_shown("verdict", &table::tables(&runs, &shapes));
}

#[test]
fn single_runs_with_the_assumed_noise_seldom_raise_a_false_alarm() {
    // Twice the assumed noise is one standard error instead of two.
    for (between, low, high) in [(0.0, 0.0, 0.0), (0.02, 0.0, 0.002), (0.05, 0.012, 0.03), (0.1, 0.13, 0.19)] {
        let regressed = row(&SINGLE_RUNS, between, 1).equal.regressed;
        assert!((low..=high).contains(&regressed), "{between}: {regressed}");
    }
}

#[test]
fn single_runs_find_changes_beyond_their_noise() {
    let found = row(&SINGLE_RUNS, 0.05, 1).regressed;
    for (found, expected) in found[2..].iter().zip([0.48, 0.7, 0.94]) {
        assert!((found - expected).abs() < 0.04, "{found} is not {expected}");
    }
}

fn more_runs_find_more_and_contradict_a_noise_that_is_too_low(rows: &[runs::Row]) {
    let row = |between: f64, count: usize| row(rows, between, count);
    for between in [0.0, 0.02, 0.05] {
        let found = [1, 2, 4, 8].map(|count| row(between, count).regressed[2]);
        assert!(found.is_sorted(), "{between}: {found:?}");
    }
    let contradict = |between: f64| [2, 4, 8].map(|count| row(between, count).equal.own_runs);
    assert!(contradict(0.05).iter().all(|share| *share <= 0.015) && contradict(0.1).is_sorted());
    let alarms = [1, 2, 4, 8].map(|count| row(0.1, count).equal.regressed);
    assert!(alarms.iter().rev().is_sorted() && alarms[3] < 0.05, "{alarms:?}");
}

fn without_any_noise_between_runs_false_alarms_stay_rare(rows: &[runs::Row]) {
    for count in [2, 4, 8] {
        for between in [0.0, 0.02, 0.05, 0.1] {
            let regressed = row(rows, between, count).equal.regressed_without_noise;
            assert!(regressed <= 0.05, "{between} {count}: {regressed}");
        }
    }
}

#[test]
fn equal_populations_of_any_shape_seldom_raise_a_false_alarm() {
    equal_populations_raise_few_alarms(&SOME_SHAPES);
}

fn equal_populations_raise_few_alarms(shapes: &shapes::Simulation) {
    for row in &shapes.equal {
        let name = format!("{} {:?}: any {}", row.shape.name(), row.counts, row.any);
        assert!(row.mean <= ALARMS && row.any <= 0.05, "{name}, mean {}", row.mean);
        assert!(row.location <= ALARMS && row.median_interval <= 0.05, "{name}");
        assert!([row.tail_count, row.tail_interval].into_iter().flatten().all(|share| share <= 0.05), "{name}");
        assert!(row.tail.is_none_or(|share| share <= ALARMS), "{name}");
    }
}

#[test]
fn a_change_of_shape_is_found_by_one_of_the_tests() {
    changes_of_shape_are_found(&SOME_SHAPES);
}

fn changes_of_shape_are_found(shapes: &shapes::Simulation) {
    for row in shapes.changed.iter().filter(|row| row.counts == [100; 2]) {
        assert!(row.any > 0.7, "{}: {}", row.shape.name(), row.any);
    }
}

#[test]
fn the_page_shows_the_simulated_rows() {
    page::assert_rows_shown("verdict", table::tables(&SINGLE_RUNS, &SOME_SHAPES).lines().map(str::to_owned));
}
