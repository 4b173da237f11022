//! The claims of `docs/statistics.md` about comparisons within one run.

#[path = "../../examples/pairs/simulation.rs"]
mod simulation;
#[path = "../../examples/pairs/table.rs"]
mod table;

use std::sync::LazyLock;

use simulation::{Design, Row, System};

use crate::{page, populations};

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(simulation::simulate);

/// The limit for the share of false positives: at a rate of 5 %, 400 comparisons exceed it once in ten thousand times.
const ALARMS: f64 = 0.095;

fn rows(design: Design) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.design == design)
}

#[test]
fn pairs_of_equal_cells_are_seldom_different_however_the_system_changes() {
    for row in rows(Design::Pairs) {
        assert!(row.differ[0] <= ALARMS && row.differ[1] <= row.differ[0], "{row:?}");
    }
}

// What interleaving is for: a drift of the system looks like a difference of the cells.
#[test]
fn equal_cells_that_are_sampled_one_after_the_other_differ_if_the_system_changes() {
    for row in rows(Design::Sequence).filter(|row| row.system == System::Drifting) {
        assert!(row.differ[1] > 0.3, "{row:?}");
    }
    for row in rows(Design::Sequence).filter(|row| row.system == System::Steady) {
        assert!(row.differ[0] <= ALARMS, "{row:?}");
    }
}

#[test]
fn pairs_find_a_change_that_a_drift_hides() {
    let drifting =
        |design, samples| rows(design).find(|row| row.system == System::Drifting && row.samples == samples).unwrap();
    let (pairs, rounds) = (drifting(Design::Pairs, 6), drifting(Design::Rounds, 6));
    assert!(pairs.found[1] > 0.9 && rounds.found[1] < 0.7, "{pairs:?} {rounds:?}");
    let (pairs, rounds) = (drifting(Design::Pairs, 12), drifting(Design::Rounds, 12));
    assert!(pairs.equivalent > 0.9 && rounds.equivalent < 0.1, "{pairs:?} {rounds:?}");
}

#[test]
fn the_page_shows_the_simulated_table() {
    page::assert_shown("pairs", &table::table(&ROWS));
}
