//! Variants sampled in blocks until the rule says stop, many times over.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use wb_compare::sequential_test::{Options, SequentialTest, StoppingState, VariantResult, VariantResults};
use wb_compare::statistical::Verdict;
use wb_model::Direction;

use super::populations::Population;

const REPETITIONS: usize = 1000;
const SEED: u64 = 7;
/// The scale of the noise.
const SPREAD: f64 = 0.03;
const OPTIONS: Options = Options { max_blocks: 30, threshold: 5.0, error_rate: 0.05, direction: Direction::Higher };

/// Nothing is equivalent, so that every look is taken.
const STRICT: Options = Options { threshold: 0.0, ..OPTIONS };

/// A population, and what came of it.
pub(crate) struct Row {
    pub(crate) population: Population,
    /// Two variants that do not differ.
    pub(crate) equal: Outcome,
    /// The same, without a threshold.
    pub(crate) strict: Outcome,
    /// Four of them.
    pub(crate) four: Outcome,
    /// The second has 10 % more.
    pub(crate) more: Outcome,
}

/// What came of many.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Some variant is said to be improved or regressed.
    pub(crate) told: f64,
    /// All variants are equivalent.
    pub(crate) equivalent: f64,
    /// The interval of the second variant has the truth in it, of those that have one.
    pub(crate) covers: f64,
    /// The mean of the second variant's ratio over the truth.
    pub(crate) ratio: f64,
    /// The mean number of blocks.
    pub(crate) blocks: f64,
}

/// Every population
pub(crate) fn simulated() -> Vec<Row> {
    let rule = |variants, options| SequentialTest::new(variants, options).expect("30 blocks are enough");
    let [two, strict, four] = [rule(2, OPTIONS), rule(2, STRICT), rule(4, OPTIONS)];
    let row = |population| Row {
        population,
        equal: outcome(&two, population, &[1.0, 1.0]),
        strict: outcome(&strict, population, &[1.0, 1.0]),
        four: outcome(&four, population, &[1.0; 4]),
        more: outcome(&two, population, &[1.0, 1.1]),
    };
    Population::ALL.into_par_iter().map(row).collect()
}

fn outcome(rule: &SequentialTest, population: Population, factors: &[f64]) -> Outcome {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut outcome = Outcome::default();
    let (one, mut intervals) = (1.0 / REPETITIONS as f64, 0.0);
    let truth = factors[1] / factors[0];
    for _ in 0..REPETITIONS {
        let VariantResults { blocks, variants, .. } = measured(rule, population, factors, &mut rng);
        let share = |is: bool| if is { one } else { 0.0 };
        let told = |standing: &VariantResult| matches!(standing.verdict, Verdict::Improved | Verdict::Regressed);
        outcome.told += share(variants.iter().any(told));
        outcome.equivalent += share(variants.iter().all(|standing| standing.verdict == Verdict::Equivalent));
        outcome.blocks += one * blocks as f64;
        outcome.ratio += one * variants[0].ratio.unwrap_or(f64::NAN) / truth;
        if let Some(ci) = variants[0].interval {
            intervals += 1.0;
            outcome.covers += f64::from((ci.low..=ci.high).contains(&truth));
        }
    }
    outcome.covers /= intervals;
    outcome
}

/// Blocks until the rule says stop.
fn measured(rule: &SequentialTest, population: Population, factors: &[f64], rng: &mut ChaCha8Rng) -> VariantResults {
    let mut blocks: Vec<Vec<f64>> = Vec::new();
    loop {
        blocks.push(block(rng, population, blocks.len(), factors));
        let standings = rule.evaluate(&blocks).expect("drawn samples are above zero");
        if standings.state != StoppingState::Continue {
            return standings;
        }
    }
}

/// A sample of each variant, taken in random order.
fn block(rng: &mut ChaCha8Rng, population: Population, at: usize, factors: &[f64]) -> Vec<f64> {
    let variants = factors.len();
    let mut order: Vec<usize> = (0..variants).collect();
    order.shuffle(rng);
    let mut samples = vec![0.0; variants];
    for (position, variant) in order.into_iter().enumerate() {
        let drawn = population.draw(rng, SPREAD, at * variants + position, OPTIONS.max_blocks * variants);
        // A ratio needs samples above zero; heavy tails reach below it once in a million times.
        samples[variant] = drawn.max(1.0) * factors[variant];
    }
    samples
}
