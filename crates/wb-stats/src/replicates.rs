//! Noise estimates from replicated runs of one system: the variance between runs, and the part of it that is due to
//! their samples.
//!
//! Everything is on logarithms, so that 0.02 is two percent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal};

use crate::Samples;

/// The confidence of [`Replicates::between_upper`].
const UPPER_CONFIDENCE: f64 = 0.95;

/// The noise of replicated runs of one system, or of several systems, pooled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replicates {
    /// The noise of a run's level, and its degrees of freedom.
    #[serde(flatten)]
    pub noise: RunNoise,
    /// The standard deviation between runs, without the part that is due to their samples; never below 0.
    pub between: f64,
    /// The upper 95 % confidence limit of `between`, for normally distributed levels; high for few runs.
    pub between_upper: f64,
}

/// The noise of the levels of runs. The level of a run is the logarithm of its samples' median.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunNoise {
    /// The standard deviation of a run's level, including the noise of its own samples.
    pub stddev: f64,
    /// The standard error of a run's level due to its samples, as a root mean square over runs; 0 if no run has two
    /// samples.
    pub sampling: f64,
    /// The robust standard deviation of a sample around its run's median: 1.4826 times the median distance. `None` if
    /// no run has two samples.
    pub within: Option<f64>,
    /// The degrees of freedom of the standard deviation: runs minus systems.
    pub degrees: f64,
}

impl Replicates {
    /// Estimates the noise of systems, each a list of runs with their samples.
    ///
    /// The variance between runs is the variance of the runs' levels around the mean of their system, minus the mean of
    /// their sampling variances (the method of moments of a one-way random model: Searle, Casella, McCulloch, Variance
    /// Components, 1992, section 3.6), and 0 if that is negative. Its upper limit uses the upper limit of the first
    /// variance instead.
    ///
    /// `None` if no system has two runs, a run is empty, or a sample is not above zero.
    pub fn new(systems: &[Vec<Vec<f64>>]) -> Option<Self> {
        let systems: Vec<Vec<RunLevel>> =
            systems.iter().map(|runs| runs.iter().map(|run| RunLevel::new(run)).collect()).collect::<Option<_>>()?;
        let levels = || systems.iter().filter(|runs| runs.len() > 1).flatten();
        let degrees = systems.iter().map(|runs| runs.len().saturating_sub(1)).sum::<usize>() as f64;
        if degrees == 0.0 {
            return None;
        }
        let variance = systems.iter().map(|runs| sum_of_squares(runs)).sum::<f64>() / degrees;
        let sampling = levels().map(|level| level.sampling.unwrap_or(0.0)).sum::<f64>() / levels().count() as f64;
        let distances: Vec<f64> = systems.iter().flatten().flat_map(RunLevel::distances).collect();
        let within = Samples::new(&distances).ok().map(|distances| 1.4826 * distances.median());
        let upper = variance * degrees / ChiSquared::new(degrees).ok()?.inverse_cdf(1.0 - UPPER_CONFIDENCE);
        Some(Self {
            noise: RunNoise { stddev: variance.sqrt(), sampling: sampling.sqrt(), within, degrees },
            between: (variance - sampling).max(0.0).sqrt(),
            between_upper: (upper - sampling).max(0.0).sqrt(),
        })
    }
}

/// The sum of squares of levels around their mean.
pub(crate) fn sum_of_squares(runs: &[RunLevel]) -> f64 {
    let mean = runs.iter().map(|run| run.level).sum::<f64>() / runs.len().max(1) as f64;
    runs.iter().map(|run| (run.level - mean).powi(2)).sum()
}

/// The level of a run and its sampling variance.
#[derive(Debug, Clone)]
pub(crate) struct RunLevel {
    logs: Samples,
    /// The logarithm of the run's median.
    pub(crate) level: f64,
    /// The variance of the level due to the samples; `None` for a single sample.
    pub(crate) sampling: Option<f64>,
}

impl RunLevel {
    /// `None` if a sample is not above zero, or there are no samples.
    pub(crate) fn new(run: &[f64]) -> Option<Self> {
        if run.iter().any(|sample| *sample <= 0.0) {
            return None;
        }
        let logs = Samples::new(&run.iter().map(|sample| sample.ln()).collect::<Vec<_>>()).ok()?;
        Some(Self { level: logs.median(), sampling: median_variance(&logs), logs })
    }

    /// The distance of each sample from the median; none for a single sample.
    fn distances(&self) -> impl Iterator<Item = f64> {
        let several = self.logs.count() > 1;
        self.logs.sorted().iter().map(|log| (log - self.level).abs()).filter(move |_| several)
    }
}

/// The variance of the median of independent samples, estimated from the distance of two order statistics (Price,
/// Bonett, Estimating the variance of the sample median, 2001). `None` below two samples.
pub fn median_variance(samples: &Samples) -> Option<f64> {
    let n = samples.count();
    if n < 2 {
        return None;
    }
    // The c-th smallest and the c-th largest are about two standard errors of the median to either side.
    let c = (((n + 1) as f64 / 2.0 - (n as f64).sqrt()).round() as usize).max(1);
    let mut mass = 0.5_f64.powi(n as i32);
    let mut below = mass;
    for k in 1..c {
        mass *= (n + 1 - k) as f64 / k as f64;
        below += mass;
    }
    let z = if below > 0.0 { Normal::standard().inverse_cdf(1.0 - below) } else { 2.0 };
    Some(((samples.sorted()[n - c] - samples.sorted()[c - 1]) / (2.0 * z)).powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(actual: f64, expected: f64) {
        assert!((actual / expected - 1.0).abs() < 1e-6, "{actual} is not {expected}");
    }

    #[test]
    fn each_system_is_compared_with_its_own_mean() {
        let run = |level: f64| vec![level];
        let of = |levels: &[f64]| levels.iter().map(|level| run(level.exp())).collect::<Vec<_>>();
        let replicates = Replicates::new(&[of(&[1.0, 1.02, 0.98]), of(&[5.0, 5.02]), of(&[7.0])]).unwrap();
        assert_eq!(replicates.noise.degrees, 3.0);
        near(replicates.noise.stddev.powi(2), (2.0 * 0.0004 + 2.0 * 0.0001) / 3.0);
        assert_eq!((replicates.noise.sampling, replicates.noise.within), (0.0, None));
        near(replicates.between, replicates.noise.stddev);
        // The 5 % quantile of χ² with 3 degrees of freedom is 0.3518463.
        near(replicates.between_upper.powi(2), replicates.between.powi(2) * 3.0 / 0.351_846_318);
    }

    #[test]
    fn variation_due_to_samples_is_not_variation_between_runs() {
        let run = |level: f64| (0..10).map(|n| (level + 0.01 * f64::from(n)).exp()).collect::<Vec<f64>>();
        let replicates = Replicates::new(&[[0.0, 0.001, 0.002].map(run).to_vec()]).unwrap();
        assert_eq!(replicates.between, 0.0);
        assert!(replicates.noise.sampling > 0.01 && replicates.between_upper < replicates.noise.sampling);
        near(replicates.noise.within.unwrap(), 1.4826 * 0.025);
        assert_eq!(Replicates::new(&[vec![vec![1.0]], vec![vec![1.0]]]), None);
        assert_eq!(Replicates::new(&[vec![vec![1.0], vec![-1.0]]]), None);
        assert_eq!(Replicates::new(&[vec![vec![1.0], vec![]]]), None);
    }

    /// Against σ²π/2n of a normal population, and against the order statistics of Price and Bonett.
    #[test]
    fn the_variance_of_a_median_is_that_of_the_samples_around_it() {
        let of = |n: usize| {
            let quantile = |index: usize| Normal::standard().inverse_cdf((index as f64 + 0.5) / n as f64);
            median_variance(&Samples::new(&(0..n).map(quantile).collect::<Vec<_>>()).unwrap()).unwrap()
        };
        for n in [30, 101, 2000] {
            let expected = std::f64::consts::FRAC_PI_2 / n as f64;
            assert!((of(n) / expected - 1.0).abs() < 0.1, "{n}: {}", of(n));
        }
        let six = median_variance(&Samples::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap()).unwrap();
        near(six, (5.0_f64 / (2.0 * 2.153_874_694)).powi(2));
        assert_eq!(median_variance(&Samples::new(&[1.0]).unwrap()), None);
    }
}
