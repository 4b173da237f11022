//! The claims of `docs/statistics.md` about interleaved variants and A/A calibration.

#[path = "../../examples/ab/designs.rs"]
mod designs;
#[path = "../../examples/ab/families.rs"]
mod families;
#[path = "../../examples/ab/stopping.rs"]
mod stopping;
#[path = "../../examples/ab/table.rs"]
mod table;

use std::sync::LazyLock;

use crate::page;
use crate::populations::{self, Population};

use designs::System;
use families::FamilyRow;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use stopping::PopulationResult;
use wb_compare::experiment::{attempt_rounds, blocks_by_round};
use wb_compare::sequential_test::{CaseBlocks, MetricBlocks, Options, SequentialTest};
use wb_model::Direction;
use wb_results::experiment::{Calibration, Design, VariantVerdict};

/// Of seven populations, one without outliers and one with.
static ROWS: LazyLock<Vec<PopulationResult>> =
    LazyLock::new(|| stopping::simulate(&[Population::Normal, Population::T3]));
/// A fifth of all: each row has its own random numbers.
static FAMILIES: LazyLock<Vec<FamilyRow>> = LazyLock::new(|| families::simulate(&[Population::T3], &[1, 10]));
static SYSTEMS: LazyLock<Vec<(System, Calibration)>> = LazyLock::new(designs::simulate);

/// The limit for the share of false positives: at a rate of 5 %, 1,000 comparisons exceed it once in ten thousand
/// times.
const ALARMS: f64 = 0.077;

#[test]
fn equal_variants_are_seldom_reported_as_different_with_repeated_evaluation() {
    equal_variants_are_seldom_different(&ROWS);
}

fn equal_variants_are_seldom_different(rows: &[PopulationResult]) {
    for PopulationResult { population, equal, strict, four, .. } in rows {
        for outcome in [equal, strict, four] {
            assert!(outcome.decided_share <= ALARMS, "{}: {}", population.name(), outcome.decided_share);
        }
        // Without a reason to stop earlier, nearly all blocks are used.
        assert!(strict.blocks > 28.0, "{}: {}", population.name(), strict.blocks);
    }
}

#[test]
fn the_final_interval_contains_the_true_ratio() {
    intervals_contain_the_true_ratio(&ROWS);
}

fn intervals_contain_the_true_ratio(rows: &[PopulationResult]) {
    for PopulationResult { population, equal, strict, more, .. } in rows {
        for outcome in [equal, strict, more] {
            assert!(outcome.coverage >= 1.0 - ALARMS, "{}: {}", population.name(), outcome.coverage);
        }
        assert!(more.decided_share > 0.99, "{}: {}", population.name(), more.decided_share);
    }
}

#[test]
#[ignore = "simulates for a minute: make test-long"]
fn soak_every_population_and_size_of_a_family_keeps_the_claims_of_the_page() {
    let rows = stopping::simulate(&Population::ALL);
    equal_variants_are_seldom_different(&rows);
    intervals_contain_the_true_ratio(&rows);
    let families = families::simulate(&families::POPULATIONS, &families::CASES);
    few_differences_are_false_and_most_changes_are_found(&families);
    page::assert_shown("ab", &table::tables(&rows, &families, &SYSTEMS));
}

#[test]
fn of_many_cases_few_differences_are_false_and_most_changes_are_found() {
    few_differences_are_false_and_most_changes_are_found(&FAMILIES);
}

fn few_differences_are_false_and_most_changes_are_found(rows: &[FamilyRow]) {
    for FamilyRow { population, cases, changed, change, family, bonferroni } in rows {
        let kind = format!("{}, {changed} of {cases} by {change}", population.name());
        // At 5 % a simulation exceeds it once in ten thousand times.
        let limit = 0.05 + 4.0 * (0.05 * 0.95 / families::repetitions(*cases) as f64).sqrt();
        assert!(family.false_discoveries <= limit, "{kind}: {}", family.false_discoveries);
        assert!(family.found >= bonferroni.found, "{kind}: {} {}", family.found, bonferroni.found);
        if changed == cases {
            let alone = rows.iter().find(|row| {
                row.population == *population && row.cases == 1 && row.changed == 1 && row.change == *change
            });
            let alone = alone.expect("a family of one case").family.found;
            assert!(family.found > alone - 0.15, "{kind}: {} instead of {alone}", family.found);
        }
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

/// The share of differences among equal variants of a system that rises by 2 % of its first level each round, if a third of
/// one variant's attempts fail. A variant's samples are those of the blocks with the numbers that `number` gives them.
fn false_positives_with_failures(number: impl Fn(&[bool]) -> Vec<u32> + Sync) -> f64 {
    const SERIES: u64 = 400;
    let options = Options { threshold: 0.0, ..Options::default() };
    let test = SequentialTest::new(1, 2, options).expect("30 blocks are enough");
    let is_different = |seed: &u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(*seed);
        let mut values: [Vec<(f64, bool)>; 2] = Default::default();
        for round in 0..45 {
            let first = usize::from(rng.random_bool(0.5));
            for (position, variant) in [first, 1 - first].into_iter().enumerate() {
                let level = 1.0 + 0.01 * f64::from(2 * round + position as u32);
                let fails = variant == 1 && rng.random_bool(1.0 / 3.0);
                values[variant].push((level * (1.0 + rng.random_range(-0.01..0.01)), fails));
            }
        }
        let numbered = values.map(|attempts| {
            let failed: Vec<bool> = attempts.iter().map(|(_, fails)| *fails).collect();
            let numbered = number(&failed).into_iter().zip(attempts);
            numbered.filter(|(_, (_, fails))| !fails).map(|(index, (value, _))| (index, value)).collect::<Vec<_>>()
        });
        let blocks = blocks_by_round(&[&numbered[0], &numbered[1]]);
        let metrics = vec![MetricBlocks { direction: Direction::Higher, blocks }];
        let case = CaseBlocks { metrics, ..CaseBlocks::default() };
        let result = test.evaluate(&[case]).expect("all samples are above zero").remove(0);
        matches!(result.metrics[0].variants[0].verdict, VariantVerdict::Better | VariantVerdict::Worse)
    };
    (0..SERIES).into_par_iter().filter(is_different).count() as f64 / SERIES as f64
}

#[test]
fn a_drift_makes_no_difference_of_failed_attempts() {
    let by_round = false_positives_with_failures(|failed| attempt_rounds(failed.iter().map(|_| true)).collect());
    assert!(by_round <= 0.1, "{by_round}");
    // A number for each sample, and none for a failed attempt.
    let by_sample = false_positives_with_failures(|failed| attempt_rounds(failed.iter().map(|fails| !fails)).collect());
    assert!(by_sample > 0.9, "{by_sample}");
}

#[test]
fn the_page_shows_the_simulated_rows() {
    let tables = table::tables(&ROWS, &FAMILIES, &SYSTEMS);
    page::assert_rows_shown("ab", tables.lines().map(str::to_owned));
}
