//! The claims of `docs/statistics.md` about the verdict on a check.

#[path = "../../examples/check/simulation.rs"]
mod simulation;
#[path = "../../examples/check/table.rs"]
mod table;

use std::sync::LazyLock;

use crate::{page, populations};

use page::Rows;
use simulation::{DependentRow, FewRow, GroupRow, Row};

/// The tables, or a part of them.
struct Simulation {
    runs: Vec<Row>,
    shapes: Vec<Row>,
    dependence: Vec<DependentRow>,
    few: Vec<FewRow>,
    groups: Vec<GroupRow>,
}

impl Simulation {
    fn new(rows: Rows) -> Self {
        Self {
            runs: simulation::of_runs(rows),
            shapes: simulation::of_shapes(rows),
            dependence: simulation::of_dependence(rows),
            few: simulation::of_few(rows),
            groups: simulation::of_groups(rows),
        }
    }

    fn tables(&self) -> String {
        table::tables(&self.runs, &self.shapes, &self.dependence, &self.few, &self.groups)
    }
}

static SOME: LazyLock<Simulation> = LazyLock::new(|| Simulation::new(Rows::Every(5)));

/// With a true rate of 2.5 %, 1,000 comparisons exceed this rate once in ten thousand times.
const ALARMS: f64 = 0.047;

#[test]
#[ignore = "simulates for a minute: make test-long"]
fn soak_every_row_keeps_the_claims_of_the_page() {
    let all = Simulation::new(Rows::All);
    alarms_of_single_runs_are_as_many_as_the_noise_permits(&all);
    runs_are_seldom_regressed_or_improved(&all);
    more_runs_find_more(&all);
    no_shape_is_regressed(&all);
    dependent_samples_are_seldom_equivalent(&all);
    few_samples_are_seldom_regressed_or_improved(&all);
    groups_of_equal_sides_seldom_have_a_verdict(&all);
    page::assert_shown("check", &all.tables());
}

#[test]
fn single_runs_raise_as_many_false_alarms_as_the_assumed_noise_permits() {
    alarms_of_single_runs_are_as_many_as_the_noise_permits(&SOME);
}

fn alarms_of_single_runs_are_as_many_as_the_noise_permits(simulation: &Simulation) {
    let limits = [(0.0, 0.0, 0.0), (0.02, 0.0, 0.004), (0.05, 0.01, ALARMS), (0.1, 0.12, 0.2)];
    for row in simulation.runs.iter().filter(|row| row.runs == 1) {
        let (_, low, high) = limits.iter().find(|(between, ..)| *between == row.between).unwrap();
        assert!((*low..=*high).contains(&row.regressed), "{}: {}", row.between, row.regressed);
    }
}

#[test]
fn runs_that_differ_as_assumed_or_less_are_seldom_regressed_or_improved() {
    runs_are_seldom_regressed_or_improved(&SOME);
}

fn runs_are_seldom_regressed_or_improved(simulation: &Simulation) {
    for row in simulation.runs.iter().filter(|row| row.between <= 0.05) {
        assert!(row.regressed <= ALARMS && row.improved <= ALARMS, "{} {}", row.between, row.runs);
    }
}

fn more_runs_find_more(simulation: &Simulation) {
    for change in 0..simulation::CHANGES.len() {
        for runs in simulation.runs.chunks(4).filter(|runs| runs[0].between <= 0.05) {
            let found: Vec<f64> = runs.iter().map(|row| row.found[change]).collect();
            assert!(found.is_sorted(), "{change}: {found:?}");
        }
    }
}

#[test]
fn samples_of_no_shape_are_regressed_without_a_change_if_runs_do_not_differ() {
    no_shape_is_regressed(&SOME);
}

fn no_shape_is_regressed(simulation: &Simulation) {
    for row in simulation.shapes.iter().filter(|row| row.between == 0.0) {
        assert!(row.regressed <= 0.015 && row.improved <= 0.015, "{} {:?}", row.shape.name(), row.samples);
    }
}

#[test]
fn dependent_samples_that_differ_by_the_threshold_are_seldom_equivalent() {
    dependent_samples_are_seldom_equivalent(&SOME);
}

fn dependent_samples_are_seldom_equivalent(simulation: &Simulation) {
    let rows = |correlation: f64| simulation.dependence.iter().filter(move |row| row.correlation == correlation);
    for row in rows(0.0).chain(rows(0.5)) {
        assert!(row.unequal_equivalent <= 0.06, "{} {}", row.correlation, row.samples);
    }
    // Ten samples show too little of their dependence.
    for row in rows(0.9).filter(|row| row.samples == 36) {
        assert!(row.unequal_equivalent <= 0.04 && row.unequal_if_independent > 0.1, "{}", row.spread);
    }
    for row in rows(0.9).filter(|row| row.samples == 36 && row.spread == 0.05) {
        assert!(
            row.equivalent < 0.02 && row.equal_if_independent > 0.2,
            "{} {}",
            row.equivalent,
            row.equal_if_independent
        );
    }
}

#[test]
fn few_noisy_samples_without_a_change_are_seldom_regressed_or_improved() {
    few_samples_are_seldom_regressed_or_improved(&SOME);
}

fn few_samples_are_seldom_regressed_or_improved(simulation: &Simulation) {
    for row in &simulation.few {
        assert!(row.regressed <= ALARMS && row.improved <= ALARMS, "{:?} {}", row.sides, row.spread);
    }
}

#[test]
fn groups_of_equal_checks_seldom_regress_or_improve() {
    groups_of_equal_sides_seldom_have_a_verdict(&SOME);
}

fn groups_of_equal_sides_seldom_have_a_verdict(simulation: &Simulation) {
    for row in &simulation.groups {
        // With a true rate of 5 %, 1,000 comparisons exceed this rate once in ten thousand times.
        assert!(row.changed <= 0.078, "{} {}: {}", row.is_shared, row.runs, row.changed);
    }
}

#[test]
fn the_page_shows_the_simulated_rows() {
    page::assert_rows_shown("check", SOME.tables().lines().map(str::to_owned));
}
