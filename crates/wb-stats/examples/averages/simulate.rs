//! Simulates averages of cells that were measured in the same rounds.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use wb_stats::{Budget, Estimate, Samples, SamplingDecision, SamplingRule, Summary, median_correlation};

use super::populations::{Population, normal};

/// Cells in an average, as many as RAMspeed's modes
const CELLS: usize = 4;
const SPREAD: f64 = 0.03;
const PRECISION_PERCENT: f64 = 2.0;
const REPETITIONS: usize = 2000;
const SEED: u64 = 7;

/// A population, and its quantile function, of which the argument is a normal deviate: so can deviates correlate, whatever
/// the population.
pub(crate) type Shape = (Population, fn(f64) -> f64);

pub(crate) const SHAPES: [Shape; 5] = [
    (Population::Normal, |z| z),
    (Population::LogNormal, |z| z.exp() - 1.0),
    (Population::T3, |z| StudentsT::new(0.0, 1.0, 3.0).map_or(f64::NAN, |t| t.inverse_cdf(Normal::standard().cdf(z)))),
    (Population::Coarse, f64::round),
    (Population::Uneven, |z| match Normal::standard().cdf(z) {
        p if p < 0.7 => Normal::standard().inverse_cdf(p / 0.7) / 2.0,
        p => Normal::standard().inverse_cdf((p - 0.7) / 0.3) / 2.0 + 4.0,
    }),
];

/// The results of many averages
pub(crate) struct Outcome {
    /// The fraction of intervals that cover the truth
    pub(crate) covered: f64,
    /// The same, if cells are taken as independent
    pub(crate) covered_as_independent: f64,
    /// The mean width of the intervals, over that if cells are taken as independent
    pub(crate) relative_width: f64,
}

/// Simulates averages of cells with a minimum and a maximum number of samples. The deviates of one round correlate.
pub(crate) fn simulate((population, quantile): Shape, limits: (usize, usize), correlation: f64) -> Outcome {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let truth = population.true_median(SPREAD);
    let (mut covered, mut width) = ([0.0; 2], [0.0; 2]);
    for _ in 0..REPETITIONS {
        let mut cells = vec![Vec::new(); CELLS];
        for _ in 0..limits.1 {
            let common = normal(&mut rng);
            for cell in &mut cells {
                let z = f64::sqrt(correlation) * common + f64::sqrt(1.0 - correlation) * normal(&mut rng);
                cell.push(100.0 * (1.0 + SPREAD * quantile(z)));
            }
        }
        for cell in &mut cells {
            cell.truncate(stop(limits, cell));
        }
        let medians: Vec<Estimate> = cells.iter().map(|cell| Estimate::of_median(&summary(cell))).collect();
        let rounds: Vec<BTreeMap<u32, f64>> = cells.into_iter().map(|cell| (0..).zip(cell).collect()).collect();
        let means = [
            Estimate::mean(&medians, |a, b| median_correlation(&rounds[a], &rounds[b])),
            Estimate::mean(&medians, |_, _| 0.0),
        ];
        for (at, interval) in means.into_iter().map(|mean| mean.and_then(|mean| mean.interval.ok())).enumerate() {
            let interval = interval.expect("six samples have an interval");
            covered[at] += f64::from(interval.contains(truth)) / REPETITIONS as f64;
            width[at] += interval.high - interval.low;
        }
    }
    let ([covered, covered_as_independent], [width, independent]) = (covered, width);
    Outcome { covered, covered_as_independent, relative_width: width / independent }
}

/// The number of samples at which the rule stops
fn stop((min_samples, max_samples): (usize, usize), values: &[f64]) -> usize {
    let rule = SamplingRule::Precision { percent: PRECISION_PERCENT, min_samples, max_samples };
    let goes_on = |n: usize| matches!(rule.decide(&values[..n], Budget::Left), Ok(SamplingDecision::Continue));
    (min_samples..max_samples).find(|n| !goes_on(*n)).unwrap_or(max_samples)
}

fn summary(values: &[f64]) -> Summary {
    Summary::new(&Samples::new(values).expect("drawn samples are finite"))
}
