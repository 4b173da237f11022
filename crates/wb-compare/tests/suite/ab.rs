//! The claims of `docs/statistics.md` about interleaved variants and A/A calibration.

#[path = "../../examples/ab/designs.rs"]
mod designs;
#[path = "../../examples/ab/stopping.rs"]
mod stopping;
#[path = "../../examples/ab/table.rs"]
mod table;

use std::sync::LazyLock;

use crate::{page, populations};

use designs::System;
use stopping::PopulationResult;
use wb_compare::calibrate::{Calibration, Design};

static ROWS: LazyLock<Vec<PopulationResult>> = LazyLock::new(stopping::simulate);
static SYSTEMS: LazyLock<Vec<(System, Calibration)>> = LazyLock::new(designs::simulate);

/// The limit for the share of false positives: at a rate of 5 %, 1,000 comparisons exceed it once in ten thousand
/// times.
const ALARMS: f64 = 0.077;

#[test]
fn equal_variants_are_seldom_reported_as_different_with_repeated_evaluation() {
    for PopulationResult { population, equal, strict, four, .. } in ROWS.iter() {
        for outcome in [equal, strict, four] {
            assert!(outcome.decided_share <= ALARMS, "{}: {}", population.name(), outcome.decided_share);
        }
        // Without a reason to stop earlier, nearly all blocks are used.
        assert!(strict.blocks > 28.0, "{}: {}", population.name(), strict.blocks);
    }
}

#[test]
fn the_final_interval_contains_the_true_ratio() {
    for PopulationResult { population, equal, strict, more, .. } in ROWS.iter() {
        for outcome in [equal, strict, more] {
            assert!(outcome.coverage >= 1.0 - ALARMS, "{}: {}", population.name(), outcome.coverage);
        }
        assert!(more.decided_share > 0.99, "{}: {}", population.name(), more.decided_share);
    }
}

/// The share of significant differences when a design compares a system with itself.
fn false_positives(system: &str, design: Design) -> f64 {
    let (_, calibration) = SYSTEMS.iter().find(|(one, _)| one.name == system).expect("the system is simulated");
    let result = calibration.designs.iter().find(|result| result.design == design).expect("every design is evaluated");
    result.beyond_chance.expect("there are enough samples").fraction()
}

#[test]
fn interleaving_prevents_false_positives_from_drift_and_noise_between_runs() {
    for (system, _) in SYSTEMS.iter() {
        assert!(false_positives(system.name, Design::Interleaved) <= ALARMS, "{}", system.name);
    }
    assert!(false_positives("drifting", Design::Blocked) > 0.3);
    assert!(false_positives("wandering", Design::Blocked) > 0.3);
    assert!(false_positives("runs and boots differ", Design::Runs) > 0.3);
    assert!(false_positives("steady", Design::Blocked) <= ALARMS && false_positives("steady", Design::Runs) <= ALARMS);
}

#[test]
fn the_page_shows_the_simulated_tables() {
    page::assert_shown("ab", &table::tables(&ROWS, &SYSTEMS));
}
