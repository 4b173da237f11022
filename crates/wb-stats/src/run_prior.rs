//! Comparison of two sides whose runs differ by an assumed amount.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::{StudentRatio, VarianceEstimate};

/// The probability below which the variation of the sides' own runs contradicts the prior.
const CONTRADICTION: f64 = 0.01;

/// An assumption about the noise between runs, which the runs of the sides update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunPrior {
    /// The standard deviation of the logarithm of one run's level: 0.05 is five percent. 0 states that runs do not
    /// differ.
    stddev: f64,
    /// Its degrees of freedom: one less than the number of runs of one system that it has the weight of.
    degrees: f64,
}

/// A run of a side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedRun {
    /// The logarithm of its level, such as its median. If that is a noisier estimate of the samples than the ratio, own
    /// runs contradict the prior more often.
    pub level: f64,
    /// Its share of the samples of its side, or anything proportional to it, such as their number.
    pub weight: f64,
}

/// The source of the noise between runs that a comparison is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseSource {
    /// The prior, updated by the sides' own runs.
    Prior,
    /// The sides' own runs alone, since they vary more than the prior allows.
    OwnRuns,
    /// The sides' own runs, which have a single sample each, and the prior: what differs by the spread of the runs, which
    /// includes the noise of their samples, must differ by the prior, too.
    SingleSamples,
}

impl RunPrior {
    /// The degrees of freedom of the prior: it has the weight of 31 runs of one system.
    pub const DEGREES: f64 = 30.0;

    /// Runs do not differ, unless the sides' own runs show that they do.
    pub const NONE: Self = Self { stddev: 0.0, degrees: Self::DEGREES };

    /// With [`Self::DEGREES`]. `None` if the standard deviation is negative or not finite.
    pub fn new(stddev: f64) -> Option<Self> {
        Self::with_degrees(stddev, Self::DEGREES)
    }

    /// With degrees of freedom of an estimate. `None` if a figure is negative or not finite, or less than one degree.
    pub fn with_degrees(stddev: f64, degrees: f64) -> Option<Self> {
        let valid = stddev >= 0.0 && stddev.powi(2).is_finite() && degrees >= 1.0 && degrees.is_finite();
        valid.then_some(Self { stddev, degrees })
    }

    /// The standard deviation of the logarithm of one run's level.
    pub fn stddev(self) -> f64 {
        self.stddev
    }

    /// Its degrees of freedom.
    pub fn degrees(self) -> f64 {
        self.degrees
    }

    /// The noise of a log ratio `log` that was estimated from all samples of `a` and `b`, whose variance due to the
    /// samples is `sampling`.
    ///
    /// The variance of a run is (30·S² + Σ) / (30 + n + m − 2) for n and m runs, where S is the prior's standard
    /// deviation and Σ the sum of squares of the runs' levels around the mean of their side: the conjugate prior of a
    /// variance (Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6). Runs count by the squares of their shares
    /// of the samples, Σwᵢ², which is 1/n for equal ones. The samples' variance is added, and the degrees of freedom are
    /// those of Satterthwaite (1946).
    ///
    /// If the runs contradict the prior ([`Self::source`]), or are single samples, the variance is Σ / (n + m − 2). With S = 0 only the samples'
    /// variance counts, unless the runs contradict that.
    ///
    /// `None` if a side is empty, a weight is not above zero, there are no own runs to count alone, the samples have a variance with less than one degree of
    /// freedom, or a figure is not finite.
    pub fn ratio(
        self,
        log: f64,
        a: &[WeightedRun],
        b: &[WeightedRun],
        sampling: VarianceEstimate,
        source: NoiseSource,
    ) -> Option<StudentRatio> {
        let (share, squares) = (squared_shares(a)? + squared_shares(b)?, sum_of_squares(a) + sum_of_squares(b));
        let own_degrees = (a.len() + b.len()) as f64 - 2.0;
        let run = match source {
            NoiseSource::OwnRuns | NoiseSource::SingleSamples if own_degrees < 1.0 => return None,
            NoiseSource::OwnRuns | NoiseSource::SingleSamples => {
                VarianceEstimate { variance: squares / own_degrees, degrees: own_degrees }
            }
            NoiseSource::Prior => self.update(squares, own_degrees),
        };
        let between = VarianceEstimate { variance: run.variance * share, ..run };
        let valid = sampling.variance == 0.0 || sampling.variance > 0.0 && sampling.degrees >= 1.0;
        StudentRatio::new(log, VarianceEstimate::sum(&[between, sampling])).filter(|_| valid)
    }

    /// Whether the runs contradict the prior: if Σ is beyond the 99 % quantile of its χ² distribution with n + m − 2
    /// degrees of freedom.
    ///
    /// What Σ is compared with includes the samples' noise in the runs' levels; otherwise noisy samples would look like
    /// runs that differ. `sampling` is the variance of the log ratio due to the samples within runs: that of all samples
    /// together would contain the differences between runs, and hide them.
    ///
    /// `None` if a side is empty, or a figure is invalid.
    pub fn source(self, a: &[WeightedRun], b: &[WeightedRun], sampling: f64) -> Option<NoiseSource> {
        let (share, squares) = (squared_shares(a)? + squared_shares(b)?, sum_of_squares(a) + sum_of_squares(b));
        Some(self.source_of(squares, (a.len() + b.len()) as f64 - 2.0, sampling / share))
    }

    /// `sampling` is the variance of one run's level due to its samples.
    fn source_of(self, squares: f64, degrees: f64, sampling: f64) -> NoiseSource {
        // Fails without degrees of freedom: single runs contradict nothing.
        let Ok(null) = ChiSquared::new(degrees) else { return NoiseSource::Prior };
        let expected = self.stddev.powi(2) + sampling;
        let contradicts = if expected > 0.0 { null.sf(squares / expected) < CONTRADICTION } else { squares > 0.0 };
        if contradicts { NoiseSource::OwnRuns } else { NoiseSource::Prior }
    }

    fn update(self, squares: f64, own_degrees: f64) -> VarianceEstimate {
        let degrees = self.degrees + own_degrees;
        if self.stddev == 0.0 {
            return VarianceEstimate { variance: 0.0, degrees };
        }
        VarianceEstimate { variance: (self.degrees * self.stddev.powi(2) + squares) / degrees, degrees }
    }
}

/// The sum of the squares of the runs' shares of the samples.
fn squared_shares(runs: &[WeightedRun]) -> Option<f64> {
    let total: f64 = runs.iter().map(|run| run.weight).sum();
    let valid = total.is_finite() && runs.iter().all(|run| run.weight > 0.0 && run.level.is_finite());
    (valid && !runs.is_empty()).then(|| runs.iter().map(|run| (run.weight / total).powi(2)).sum())
}

/// The sum of squares of the runs' levels around their mean.
fn sum_of_squares(runs: &[WeightedRun]) -> f64 {
    let mean = runs.iter().map(|run| run.level).sum::<f64>() / runs.len() as f64;
    runs.iter().map(|run| (run.level - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_VARIANCE: VarianceEstimate = VarianceEstimate { variance: 0.0, degrees: 0.0 };

    fn runs(levels: &[f64]) -> Vec<WeightedRun> {
        levels.iter().map(|&level| WeightedRun { level, weight: 10.0 }).collect()
    }

    struct Compared {
        ratio: StudentRatio,
        source: NoiseSource,
    }

    fn compare(prior: RunPrior, a: &[WeightedRun], b: &[WeightedRun], sampling: VarianceEstimate) -> Option<Compared> {
        let source = prior.source(a, b, sampling.variance)?;
        Some(Compared { ratio: prior.ratio(0.1, a, b, sampling, source)?, source })
    }

    fn ratio(stddev: f64, a: &[f64], b: &[f64], sampling: VarianceEstimate) -> Compared {
        compare(RunPrior::new(stddev).unwrap(), &runs(a), &runs(b), sampling).unwrap()
    }

    #[track_caller]
    fn near(actual: f64, expected: f64) {
        assert!((actual / expected - 1.0).abs() < 1e-9, "{actual} is not {expected}");
    }

    #[test]
    fn single_runs_have_the_noise_of_the_prior() {
        let single = ratio(0.05, &[0.0], &[0.1], NO_VARIANCE);
        near(single.ratio.standard_error(), 0.05 * 2.0_f64.sqrt());
        assert_eq!((single.ratio.degrees(), single.source), (30.0, NoiseSource::Prior));
        let sampled = ratio(0.05, &[0.0], &[0.1], VarianceEstimate { variance: 0.0004, degrees: 18.0 }).ratio;
        near(sampled.standard_error(), 0.0054_f64.sqrt());
        near(sampled.degrees(), 0.0054_f64.powi(2) / (0.005_f64.powi(2) / 30.0 + 0.0004_f64.powi(2) / 18.0));
    }

    #[test]
    fn own_runs_update_the_prior() {
        let updated = ratio(0.05, &[-0.03, 0.03], &[0.08, 0.12], NO_VARIANCE);
        near(updated.ratio.standard_error().powi(2), (30.0 * 0.0025 + 0.0018 + 0.0008) / 32.0);
        assert_eq!((updated.ratio.degrees(), updated.source), (32.0, NoiseSource::Prior));
    }

    /// SciPy: the 99 % quantile of χ² with 2 degrees of freedom is 9.210340.
    #[test]
    fn own_runs_that_contradict_the_prior_count_alone() {
        let at = |squares: f64| {
            let half = (squares * 0.0025 / 4.0).sqrt();
            ratio(0.05, &[-half, half], &[-half, half], NO_VARIANCE)
        };
        assert_eq!(at(9.21).source, NoiseSource::Prior);
        let own = at(9.211);
        assert_eq!((own.source, own.ratio.degrees()), (NoiseSource::OwnRuns, 2.0));
        near(own.ratio.standard_error().powi(2), 9.211 * 0.0025 / 2.0);
    }

    #[test]
    fn without_noise_between_runs_only_the_samples_count_unless_runs_differ() {
        let sampling = VarianceEstimate { variance: 0.0001, degrees: 38.0 };
        for side in [&[0.0][..], &[-0.01, 0.01]] {
            let same = ratio(0.0, side, side, sampling);
            assert_eq!((same.source, same.ratio.variance()), (NoiseSource::Prior, sampling));
        }
        let differing = [-0.05, 0.05];
        assert_eq!(ratio(0.0, &differing, &differing, sampling).source, NoiseSource::OwnRuns);
        assert_eq!(ratio(0.0, &differing, &differing, NO_VARIANCE).source, NoiseSource::OwnRuns);
        assert_eq!(ratio(0.0, &[0.0], &[0.1], NO_VARIANCE).ratio.p_value(), 0.0);
    }

    #[test]
    fn noisy_samples_do_not_look_like_runs_that_differ() {
        let noisy = VarianceEstimate { variance: 0.04, degrees: 38.0 };
        let side = [-0.2, 0.2];
        assert_eq!(ratio(0.05, &side, &side, noisy).source, NoiseSource::Prior);
        assert_eq!(ratio(0.05, &side, &side, NO_VARIANCE).source, NoiseSource::OwnRuns);
    }

    #[test]
    fn a_run_counts_by_the_square_of_its_share() {
        let prior = RunPrior::new(0.05).unwrap();
        let unequal = [(0.0, 30.0), (0.0, 10.0)].map(|(level, weight)| WeightedRun { level, weight });
        let error = |a: &[WeightedRun]| {
            prior.ratio(0.0, a, &runs(&[0.0, 0.0]), NO_VARIANCE, NoiseSource::Prior).unwrap().standard_error().powi(2)
        };
        near(error(&unequal) / error(&runs(&[0.0, 0.0])), 0.5625 + 0.0625 + 0.5);
    }

    #[test]
    fn invalid_figures_are_refused() {
        assert_eq!((RunPrior::new(-0.1), RunPrior::new(f64::NAN), RunPrior::new(1e200)), (None, None, None));
        let prior = RunPrior::new(0.05).unwrap();
        let run = |level, weight| [WeightedRun { level, weight }];
        let valid = run(0.0, 1.0);
        for invalid in [run(f64::NAN, 1.0), run(0.0, 0.0), run(0.0, -1.0), run(0.0, f64::INFINITY)] {
            assert_eq!(prior.ratio(0.0, &invalid, &valid, NO_VARIANCE, NoiseSource::Prior), None);
            assert_eq!(prior.source(&invalid, &valid, 0.0), None);
        }
        assert_eq!(prior.ratio(0.0, &[], &valid, NO_VARIANCE, NoiseSource::Prior), None);
        assert_eq!(prior.ratio(f64::INFINITY, &valid, &valid, NO_VARIANCE, NoiseSource::Prior), None);
        let far = [-1e300, 1e300].map(|level| WeightedRun { level, weight: 1.0 });
        assert_eq!(prior.ratio(0.0, &far, &far, NO_VARIANCE, NoiseSource::Prior), None);
        let close = [-1e-20, 1e-20].map(|level| WeightedRun { level, weight: 1.0 });
        assert_eq!(RunPrior::new(1e-200).unwrap().source(&close, &close, 0.0), Some(NoiseSource::OwnRuns));
        assert_eq!(prior.ratio(0.0, &valid, &valid, NO_VARIANCE, NoiseSource::OwnRuns), None);
        let unknown = VarianceEstimate { variance: 0.1, degrees: 0.0 };
        assert_eq!(prior.ratio(0.0, &valid, &valid, unknown, NoiseSource::Prior), None);
    }
}
