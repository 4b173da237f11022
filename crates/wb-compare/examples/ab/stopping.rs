//! Many simulations of variants sampled in blocks until the stopping rule ends them.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use wb_compare::sequential_test::{CaseBlocks, MetricBlocks, MetricResult, Options, SequentialTest};
use wb_model::Direction;
use wb_results::experiment::{VariantResult, VariantVerdict};

use super::populations::Population;

const REPETITIONS: usize = 1000;
const SEED: u64 = 7;
/// The scale of the noise.
const SPREAD: f64 = 0.03;
const OPTIONS: Options = Options { min_blocks: 0, max_blocks: 30, threshold: 5.0, error_rate: 0.05 };

/// Without a threshold nothing is equivalent, so that every evaluation takes place.
const STRICT: Options = Options { threshold: 0.0, ..OPTIONS };

/// The results for one population.
pub(crate) struct PopulationResult {
    pub(crate) population: Population,
    /// Two equal variants.
    pub(crate) equal: SimulationResult,
    /// Two equal variants, without a threshold.
    pub(crate) strict: SimulationResult,
    /// Four equal variants.
    pub(crate) four: SimulationResult,
    /// Two variants, the second of which has 10 % more.
    pub(crate) more: SimulationResult,
}

/// The averaged results of many simulations.
#[derive(Default)]
pub(crate) struct SimulationResult {
    /// The share in which some variant is better or worse.
    pub(crate) decided_share: f64,
    /// The share in which all variants are equivalent.
    pub(crate) equivalent: f64,
    /// The share of intervals of the second variant that contain the true ratio.
    pub(crate) coverage: f64,
    /// The mean ratio of the second variant, relative to the true ratio.
    pub(crate) ratio: f64,
    /// The mean number of blocks.
    pub(crate) blocks: f64,
}

/// Simulates these populations, each with its own random numbers.
pub(crate) fn simulate(populations: &[Population]) -> Vec<PopulationResult> {
    let rule = |variants, options| SequentialTest::new(1, variants, options).expect("30 blocks are enough");
    let [two, strict, four] = [rule(2, OPTIONS), rule(2, STRICT), rule(4, OPTIONS)];
    let row = |population| PopulationResult {
        population,
        equal: outcome(&two, population, &[1.0, 1.0]),
        strict: outcome(&strict, population, &[1.0, 1.0]),
        four: outcome(&four, population, &[1.0; 4]),
        more: outcome(&two, population, &[1.0, 1.1]),
    };
    populations.par_iter().map(|population| row(*population)).collect()
}

fn outcome(rule: &SequentialTest, population: Population, factors: &[f64]) -> SimulationResult {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut outcome = SimulationResult::default();
    let (one, mut intervals) = (1.0 / REPETITIONS as f64, 0.0);
    let truth = factors[1] / factors[0];
    for _ in 0..REPETITIONS {
        let MetricResult { blocks, variants } = run_until_stop(rule, population, factors, &mut rng);
        let share = |condition: bool| if condition { one } else { 0.0 };
        let is_decided =
            |result: &VariantResult| matches!(result.verdict, VariantVerdict::Better | VariantVerdict::Worse);
        outcome.decided_share += share(variants.iter().any(is_decided));
        outcome.equivalent += share(variants.iter().all(|result| result.verdict == VariantVerdict::Equivalent));
        outcome.blocks += one * blocks as f64;
        outcome.ratio += one * variants[0].ratio.unwrap_or(f64::NAN) / truth;
        if let Some(ci) = variants[0].interval {
            intervals += 1.0;
            outcome.coverage += f64::from((ci.low..=ci.high).contains(&truth));
        }
    }
    outcome.coverage /= intervals;
    outcome
}

/// Draws all blocks and evaluates them until the stopping rule ends the test.
fn run_until_stop(
    rule: &SequentialTest,
    population: Population,
    factors: &[f64],
    rng: &mut ChaCha8Rng,
) -> MetricResult {
    let blocks = (0..OPTIONS.max_blocks).map(|at| {
        let samples = block(rng, population, SPREAD, at, factors).into_iter().map(Some);
        (at as u32, samples.collect())
    });
    let metric = MetricBlocks { direction: Direction::Higher, blocks: blocks.collect() };
    let case = CaseBlocks { metrics: vec![metric], ..CaseBlocks::default() };
    rule.evaluate(&[case]).expect("drawn samples are above zero").remove(0).metrics.remove(0)
}

/// Draws one sample of each variant, in random order.
pub(crate) fn block(rng: &mut ChaCha8Rng, population: Population, spread: f64, at: usize, factors: &[f64]) -> Vec<f64> {
    let variants = factors.len();
    let mut order: Vec<usize> = (0..variants).collect();
    order.shuffle(rng);
    let mut samples = vec![0.0; variants];
    for (position, variant) in order.into_iter().enumerate() {
        let value = population.draw(rng, spread, at * variants + position, OPTIONS.max_blocks * variants);
        // A ratio needs samples above zero; heavy tails reach below it once in a million times.
        samples[variant] = value.max(1.0) * factors[variant];
    }
    samples
}
