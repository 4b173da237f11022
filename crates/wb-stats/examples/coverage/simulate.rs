//! Simulates sampling under the stopping rule: samples are drawn one by one until the rule stops.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wb_stats::{
    Budget, CONFIDENCE, DependenceCheck, Interval, STOPPING_CONFIDENCE, Samples, SamplingDecision, SamplingRule,
    Summary, dependence, dip, median_interval, trend,
};

use super::alternatives::interpolated_interval;
use super::populations::{Population, normal};

pub(crate) const SPREADS: [f64; 5] = [0.01, 0.02, 0.03, 0.05, 0.1];
const REPETITIONS: usize = 4000;
const SEED: u64 = 2;
const PRECISION_PERCENT: f64 = 2.0;

/// The minimum and the maximum number of samples of a cell
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    pub(crate) min: usize,
    pub(crate) max: usize,
}

impl Limits {
    pub(crate) const DEFAULT: Self = Self { min: 6, max: 30 };
    /// After the six retakes that a cell has by default
    pub(crate) const RETAKES: Self = Self { min: 12, max: 36 };
    /// With `--min-samples 12`
    pub(crate) const MIN_12: Self = Self { min: 12, max: 30 };

    fn rule(self) -> SamplingRule {
        SamplingRule::Precision { percent: PRECISION_PERCENT, min_samples: self.min, max_samples: self.max }
    }
}

/// Where the samples of a cell come from
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Source {
    /// Independent samples, or a drift
    Population(Population),
    /// Gaussian samples that correlate with the one before them: first-order autoregressive, AR(1)
    Autoregressive(f64),
    /// The same, one in twenty of them an outlier: higher by as much as a normal deviation of 20 spreads
    Contaminated(f64),
}

impl Source {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let autoregressive = [0.5, 0.9].map(Self::Autoregressive);
        Population::ALL.into_iter().map(Self::Population).chain(autoregressive)
    }

    pub(crate) fn name(self) -> String {
        match self {
            Self::Population(population) => population.name().to_owned(),
            Self::Autoregressive(correlation) => format!("AR(1), ρ = {correlation}"),
            Self::Contaminated(correlation) => format!("AR(1), ρ = {correlation}, outliers"),
        }
    }

    fn true_median(self, spread: f64) -> f64 {
        match self {
            Self::Population(population) => population.true_median(spread),
            Self::Autoregressive(_) | Self::Contaminated(_) => 100.0,
        }
    }

    fn draw(self, rng: &mut ChaCha8Rng, spread: f64, count: usize) -> Vec<f64> {
        match self {
            Self::Population(population) => {
                (0..count).map(|index| population.draw(rng, spread, index, count)).collect()
            }
            Self::Autoregressive(correlation) => {
                let innovation = (1.0 - correlation * correlation).sqrt();
                let mut deviation = normal(rng);
                let mut step = || {
                    let current = deviation;
                    deviation = correlation * deviation + innovation * normal(rng);
                    100.0 * (1.0 + spread * current)
                };
                (0..count).map(|_| step()).collect()
            }
            Self::Contaminated(correlation) => {
                let mut values = Self::Autoregressive(correlation).draw(rng, spread, count);
                for value in &mut values {
                    if rng.random_bool(0.05) {
                        *value += 100.0 * spread * 20.0 * normal(rng).abs();
                    }
                }
                values
            }
        }
    }
}

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
    dependent: f64,
    checkable: f64,
    checkable_and_dependent: f64,
    unchecked: f64,
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

    /// The share of cells in which dependence is found
    pub(crate) fn dependence_rate(&self) -> f64 {
        self.dependent / self.cells
    }

    /// The same share of the cells with enough samples to rule dependence out
    pub(crate) fn dependence_rate_of_checkable(&self) -> f64 {
        self.checkable_and_dependent / self.checkable
    }

    pub(crate) fn checkable_cells(&self) -> usize {
        self.checkable as usize
    }

    /// The share of cells in which dependence is neither found nor ruled out
    pub(crate) fn unchecked_rate(&self) -> f64 {
        self.unchecked / self.cells
    }

    fn add_dependence(&mut self, samples: &Samples) {
        let Some(dependence) = dependence(samples) else { return };
        let check = dependence.check();
        let is_found = check == DependenceCheck::Found;
        self.dependent += f64::from(is_found);
        self.checkable += f64::from(dependence.is_checkable);
        self.checkable_and_dependent += f64::from(is_found && dependence.is_checkable);
        self.unchecked += f64::from(check == DependenceCheck::TooFewSamples);
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
pub(crate) fn simulate_rule(source: Source, limits: Limits, spread: f64) -> Outcome {
    let truth = source.true_median(spread);
    let rule = limits.rule();
    let mut outcome = Outcome::default();
    for_each_cell(source, limits.max, spread, |values| {
        let (n, converged) = stop(limits, |n| match rule.decide(&values[..n], Budget::Left) {
            Ok(SamplingDecision::Continue) => None,
            decision => Some(matches!(decision, Ok(SamplingDecision::Done(_)))),
        });
        let samples = Samples::new(&values[..n]).expect("drawn samples are finite");
        let interval = Summary::new(&samples).median_interval;
        outcome.add(n, converged, interval.is_some_and(|interval| interval.contains(truth)));
        outcome.trend += is_significant(trend(&samples).map(|trend| trend.p_value));
        outcome.modes += is_significant(dip(&samples).map(|dip| dip.p_value));
        outcome.add_dependence(&samples);
    });
    outcome
}

/// Simulates cells with a fixed number of samples
pub(crate) fn simulate_fixed(source: Source, count: usize) -> Outcome {
    let truth = source.true_median(SPREADS[0]);
    let mut outcome = Outcome::default();
    for_each_cell(source, count, SPREADS[0], |values| {
        let samples = Samples::new(values).expect("drawn samples are finite");
        let interval = Summary::new(&samples).median_interval;
        outcome.add(count, false, interval.is_some_and(|interval| interval.contains(truth)));
        outcome.add_dependence(&samples);
    });
    outcome
}

/// Alternative intervals, used both to stop and to report
#[derive(Clone, Copy)]
pub(crate) enum Alternative {
    /// Order statistics, not widened for dependent samples
    NotWidened,
    /// Order statistics at exactly the promised confidence, not widened
    Uncorrected,
    /// Interpolated between order statistics at exactly the promised confidence, not widened
    Interpolated,
}

/// Simulates the same cells with an alternative interval
pub(crate) fn simulate_alternative(alternative: Alternative, source: Source, limits: Limits, spread: f64) -> Outcome {
    let truth = source.true_median(spread);
    let mut outcome = Outcome::default();
    for_each_cell(source, limits.max, spread, |values| {
        let at = |n: usize| -> Option<(Samples, Interval)> {
            let samples = Samples::new(&values[..n]).ok()?;
            let interval = match alternative {
                Alternative::NotWidened => median_interval(&samples, STOPPING_CONFIDENCE),
                Alternative::Uncorrected => median_interval(&samples, CONFIDENCE),
                Alternative::Interpolated => interpolated_interval(&samples, CONFIDENCE),
            };
            Some((samples, interval?))
        };
        let (n, converged) = stop(limits, |n| {
            let (samples, interval) = at(n)?;
            let narrow = interval.half_width_percent(samples.median())? <= PRECISION_PERCENT;
            (narrow || n == limits.max).then_some(narrow)
        });
        outcome.add(n, converged, at(n).is_some_and(|(_, interval)| interval.contains(truth)));
    });
    outcome
}

fn is_significant(p_value: Option<f64>) -> f64 {
    f64::from(p_value.is_some_and(|p| p < 0.05))
}

fn stop(limits: Limits, decide: impl Fn(usize) -> Option<bool>) -> (usize, bool) {
    (limits.min..=limits.max).find_map(|n| decide(n).map(|converged| (n, converged))).unwrap_or((limits.max, false))
}

fn for_each_cell(source: Source, count: usize, spread: f64, mut cell: impl FnMut(&[f64])) {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    for _ in 0..REPETITIONS {
        cell(&source.draw(&mut rng, spread, count));
    }
}
