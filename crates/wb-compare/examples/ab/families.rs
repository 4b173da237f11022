//! Simulations of tests with many cases, some of which the second variant changes: the false discovery rate and the
//! power, of the family as a whole and with the error rate divided by the number of cases (Bonferroni).

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use wb_compare::sequential_test::{CaseBlocks, CaseResult, MetricBlocks, Options, SequentialTest};
use wb_model::Direction;
use wb_results::experiment::VariantVerdict;

use super::page::percent;
use super::populations::Population;
use super::stopping::block;

/// The number of cases.
pub(crate) const CASES: [usize; 3] = [1, 10, 40];
/// The shares of cases that the second variant changes.
const CHANGED: [f64; 3] = [0.0, 0.25, 1.0];
/// The changes, as fractions.
const CHANGES: [f64; 2] = [0.02, 0.05];
pub(crate) const POPULATIONS: [Population; 3] = [Population::Normal, Population::T3, Population::Drifting];
/// The total number of cases simulated for each row.
const SIMULATED: usize = 8000;
/// The maximum number of families for each row.
const FAMILIES: usize = 1000;
const SEED: u64 = 9;
/// The scale of the noise.
const SPREAD: f64 = 0.02;
const OPTIONS: Options = Options { min_blocks: 0, max_blocks: 30, threshold: 1.0, error_rate: 0.05 };

/// The results of families of one kind.
pub(crate) struct FamilyRow {
    pub(crate) population: Population,
    pub(crate) cases: usize,
    pub(crate) changed: usize,
    pub(crate) change: f64,
    pub(crate) family: FamilyOutcome,
    pub(crate) bonferroni: FamilyOutcome,
}

/// The averaged results of families.
#[derive(Default)]
pub(crate) struct FamilyOutcome {
    /// The false discovery rate: the mean share of unchanged cases among those reported as different.
    pub(crate) false_discoveries: f64,
    /// The share of changed cases that are found.
    pub(crate) found: f64,
    /// The mean number of blocks of a case.
    pub(crate) blocks: f64,
}

/// Simulates every kind of family of these populations and numbers of cases.
pub(crate) fn simulate(populations: &[Population], sizes: &[usize]) -> Vec<FamilyRow> {
    let mut kinds = Vec::new();
    for &population in populations {
        for &cases in sizes {
            for share in CHANGED {
                let changed = (cases as f64 * share).round() as usize;
                // Without changed cases their size does not matter; a quarter of one case is none.
                let changes = if changed == 0 { &CHANGES[..1] } else { &CHANGES[..] };
                if share == 0.0 || changed > 0 {
                    kinds.extend(changes.iter().map(|change| (population, cases, changed, *change)));
                }
            }
        }
    }
    let tests = sizes.iter().map(|&cases| {
        let alone = Options { error_rate: OPTIONS.error_rate / cases as f64, ..OPTIONS };
        let tests = [SequentialTest::new(cases, 2, OPTIONS), SequentialTest::new(1, 2, alone)];
        (cases, tests.map(|test| test.expect("30 blocks are enough")))
    });
    let tests: BTreeMap<usize, [SequentialTest; 2]> = tests.collect();
    let row = |(population, cases, changed, change): (Population, usize, usize, f64)| {
        let [family, alone] = &tests[&cases];
        let kind = Kind { population, cases, changed, change };
        FamilyRow {
            population,
            cases,
            changed,
            change,
            family: kind.outcome(|blocks| family.evaluate(blocks).expect("drawn samples are above zero")),
            bonferroni: kind.outcome(|blocks| {
                let case = |case: &CaseBlocks| alone.evaluate(std::slice::from_ref(case));
                blocks.iter().flat_map(|blocks| case(blocks).expect("drawn samples are above zero")).collect()
            }),
        }
    };
    kinds.into_par_iter().map(row).collect()
}

impl FamilyRow {
    /// The row of the table.
    pub(crate) fn line(&self) -> String {
        let Self { population, cases, changed, change, family, bonferroni } = self;
        let if_changed = |text: String| if *changed == 0 { "–".to_owned() } else { text };
        let both = |figure: fn(&FamilyOutcome) -> f64| [bonferroni, family].map(|outcome| percent(figure(outcome)));
        let found = both(|outcome| outcome.found).map(if_changed).join(" | ");
        format!(
            "| {} | {cases} | {changed} | {} | {} | {found} | {:.1} | {:.1} |\n",
            population.name(),
            if_changed(format!("+{:.0} %", change * 100.0)),
            both(|outcome| outcome.false_discoveries).join(" | "),
            bonferroni.blocks,
            family.blocks,
        )
    }
}

/// The number of families of this size that are simulated for each row.
pub(crate) fn repetitions(cases: usize) -> usize {
    (SIMULATED / cases).min(FAMILIES)
}

struct Kind {
    population: Population,
    cases: usize,
    changed: usize,
    change: f64,
}

impl Kind {
    fn outcome(&self, evaluate: impl Fn(&[CaseBlocks]) -> Vec<CaseResult>) -> FamilyOutcome {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let families = repetitions(self.cases);
        let mut outcome = FamilyOutcome::default();
        let share = 1.0 / families as f64;
        for _ in 0..families {
            let blocks: Vec<CaseBlocks> = (0..self.cases).map(|case| self.draw(&mut rng, case)).collect();
            let results = evaluate(&blocks);
            let is_found = |result: &CaseResult| {
                matches!(result.metrics[0].variants[0].verdict, VariantVerdict::Better | VariantVerdict::Worse)
            };
            let (changed, unchanged) = results.split_at(self.changed);
            let [found, false_found] =
                [changed, unchanged].map(|results| results.iter().filter(|one| is_found(one)).count());
            outcome.false_discoveries += share * false_found as f64 / (found + false_found).max(1) as f64;
            outcome.found += share * found as f64 / self.changed.max(1) as f64;
            outcome.blocks +=
                share * results.iter().map(|result| result.metrics[0].blocks as f64).sum::<f64>() / self.cases as f64;
        }
        outcome
    }

    /// All blocks of a case; those after its last verdict are ignored.
    fn draw(&self, rng: &mut ChaCha8Rng, case: usize) -> CaseBlocks {
        let factor = if case < self.changed { 1.0 + self.change } else { 1.0 };
        let block = |round: usize| {
            let samples = block(rng, self.population, SPREAD, round, &[1.0, factor]);
            samples.into_iter().map(Some).collect()
        };
        let blocks = (0..).zip((0..OPTIONS.max_blocks).map(block)).collect();
        let metrics = vec![MetricBlocks { direction: Direction::Higher, blocks }];
        CaseBlocks { metrics, ..CaseBlocks::default() }
    }
}
