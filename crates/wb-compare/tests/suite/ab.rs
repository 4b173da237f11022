//! What the page on statistics claims of variants sampled in turns, and of a system against itself.

#[path = "../../examples/ab/orders.rs"]
mod orders;
#[path = "../../../wb-stats/examples/common/page.rs"]
mod page;
#[path = "../../../wb-stats/examples/common/populations.rs"]
#[allow(dead_code)] // the true medians are for another test
mod populations;
#[path = "../../examples/ab/stopping.rs"]
mod stopping;
#[path = "../../examples/ab/table.rs"]
mod table;

use std::sync::LazyLock;

use orders::System;
use stopping::Row;
use wb_compare::calibrate::{Calibration, Design};

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(stopping::simulated);
static SYSTEMS: LazyLock<Vec<(System, Calibration)>> = LazyLock::new(orders::simulated);

/// Of 1,000 comparisons with 5 % false alarms, a share above this comes once in ten thousand times.
const ALARMS: f64 = 0.077;

#[test]
fn variants_that_do_not_differ_are_seldom_told_apart_however_often_they_are_looked_at() {
    for Row { population, equal, strict, four, .. } in ROWS.iter() {
        for outcome in [equal, strict, four] {
            assert!(outcome.told <= ALARMS, "{}: {}", population.name(), outcome.told);
        }
        // The bound is used up where there is no reason to stop before.
        assert!(strict.blocks > 28.0, "{}: {}", population.name(), strict.blocks);
    }
}

#[test]
fn the_interval_at_the_last_look_has_the_truth_in_it() {
    for Row { population, equal, strict, more, .. } in ROWS.iter() {
        for outcome in [equal, strict, more] {
            assert!(outcome.covers >= 1.0 - ALARMS, "{}: {}", population.name(), outcome.covers);
        }
        assert!(more.told > 0.99, "{}: {}", population.name(), more.told);
    }
}

/// The share of comparisons of a system with itself in which an order tells the sides apart.
fn told_apart(system: &str, order: Design) -> f64 {
    let (_, calibration) = SYSTEMS.iter().find(|(one, _)| one.name == system).expect("it is simulated");
    let of = calibration.designs.iter().find(|of| of.design == order).expect("every order is tried");
    of.beyond_chance.expect("there are samples enough").fraction()
}

#[test]
fn taking_turns_keeps_what_drifts_and_differs_from_looking_like_a_difference() {
    for (system, _) in SYSTEMS.iter() {
        assert!(told_apart(system.name, Design::Interleaved) <= ALARMS, "{}", system.name);
    }
    assert!(told_apart("drifting", Design::Blocked) > 0.3);
    assert!(told_apart("wandering", Design::Blocked) > 0.3);
    assert!(told_apart("runs and boots differ", Design::Runs) > 0.3);
    assert!(told_apart("steady", Design::Blocked) <= ALARMS && told_apart("steady", Design::Runs) <= ALARMS);
}

#[test]
fn the_page_shows_the_tables_as_they_are_simulated() {
    page::assert_shown("ab", &table::tables(&ROWS, &SYSTEMS));
}
