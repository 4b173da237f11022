//! Simulates sampling under the stopping rule: samples are drawn one by one until the rule stops.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use wb_stats::{
    Budget, CONFIDENCE, Interval, Samples, SamplingDecision, SamplingRule, Summary, dip, median_interval, trend,
};

use super::alternatives::interpolated_interval;
use super::populations::Population;

pub(crate) const SPREADS: [f64; 5] = [0.01, 0.02, 0.03, 0.05, 0.1];
const REPETITIONS: usize = 4000;
const SEED: u64 = 2;
const MIN: usize = 6;
const MAX: usize = 30;
const PRECISION_PERCENT: f64 = 2.0;
const RULE: SamplingRule = SamplingRule::Precision { percent: PRECISION_PERCENT, min_samples: MIN, max_samples: MAX };

/// The results of many cells of one population
#[derive(Default)]
pub(crate) struct Outcome {
    cells: f64,
    samples: f64,
    converged: f64,
    covered: f64,
    converged_and_covered: f64,
    trend: f64,
    modes: f64,
}

impl Outcome {
    pub(crate) fn coverage(&self) -> f64 {
        self.covered / self.cells
    }

    pub(crate) fn coverage_of_converged(&self) -> f64 {
        self.converged_and_covered / self.converged
    }

    pub(crate) fn mean_n(&self) -> f64 {
        self.samples / self.cells
    }

    pub(crate) fn converged(&self) -> f64 {
        self.converged / self.cells
    }

    pub(crate) fn converged_cells(&self) -> usize {
        self.converged as usize
    }

    pub(crate) fn trend_rate(&self) -> f64 {
        self.trend / self.cells
    }

    pub(crate) fn modes_rate(&self) -> f64 {
        self.modes / self.cells
    }

    fn add(&mut self, n: usize, converged: bool, covered: bool) {
        self.cells += 1.0;
        self.samples += n as f64;
        self.converged += f64::from(converged);
        self.covered += f64::from(covered);
        self.converged_and_covered += f64::from(converged && covered);
    }
}

/// Simulates cells with the actual rule and summary
pub(crate) fn simulate_rule(population: Population, spread: f64) -> Outcome {
    let truth = population.true_median(spread);
    let mut outcome = Outcome::default();
    for_each_cell(population, spread, |values| {
        let (n, converged) = stop(|n| match RULE.decide(&values[..n], Budget::Left) {
            Ok(SamplingDecision::Continue) => None,
            decision => Some(matches!(decision, Ok(SamplingDecision::Done(_)))),
        });
        let samples = Samples::new(&values[..n]).expect("drawn samples are finite");
        let interval = Summary::of(&samples).median_interval;
        outcome.add(n, converged, interval.is_some_and(|interval| interval.contains(truth)));
        outcome.trend += is_significant(trend(&samples).map(|trend| trend.p_value));
        outcome.modes += is_significant(dip(&samples).map(|dip| dip.p_value));
    });
    outcome
}

/// Alternative intervals, used both to stop and to report
#[derive(Clone, Copy)]
pub(crate) enum Alternative {
    /// Order statistics at exactly the promised confidence
    Uncorrected,
    /// Interpolated between order statistics at exactly the promised confidence
    Interpolated,
}

/// Simulates the same cells with an alternative interval
pub(crate) fn simulate_alternative(alternative: Alternative, population: Population, spread: f64) -> Outcome {
    let truth = population.true_median(spread);
    let mut outcome = Outcome::default();
    for_each_cell(population, spread, |values| {
        let at = |n: usize| -> Option<(Samples, Interval)> {
            let samples = Samples::new(&values[..n]).ok()?;
            let interval = match alternative {
                Alternative::Uncorrected => median_interval(&samples, CONFIDENCE),
                Alternative::Interpolated => interpolated_interval(&samples, CONFIDENCE),
            };
            Some((samples, interval?))
        };
        let (n, converged) = stop(|n| {
            let (samples, interval) = at(n)?;
            let narrow = interval.half_width_percent(samples.median())? <= PRECISION_PERCENT;
            (narrow || n == MAX).then_some(narrow)
        });
        outcome.add(n, converged, at(n).is_some_and(|(_, interval)| interval.contains(truth)));
    });
    outcome
}

fn is_significant(p_value: Option<f64>) -> f64 {
    f64::from(p_value.is_some_and(|p| p < 0.05))
}

fn stop(decide: impl Fn(usize) -> Option<bool>) -> (usize, bool) {
    (MIN..=MAX).find_map(|n| decide(n).map(|converged| (n, converged))).unwrap_or((MAX, false))
}

fn for_each_cell(population: Population, spread: f64, mut cell: impl FnMut(&[f64])) {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    for _ in 0..REPETITIONS {
        let values: Vec<f64> = (0..MAX).map(|index| population.draw(&mut rng, spread, index, MAX)).collect();
        cell(&values);
    }
}
