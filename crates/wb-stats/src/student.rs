//! The ratio of two sides by Student's t distribution, and that of sides with few runs, based on an external estimate
//! of the noise between runs.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::replicates::{RunLevel, RunNoise, sum_of_squares};
use crate::{Interval, NoiseSource, Ratio, RunPrior, VarianceEstimate, WeightedRun};

/// Fraction by which the interval between two single runs is widened; less with more runs, since their mean is closer
/// to normal. Runs are seldom normally distributed: without it, up to 12 % of all comparisons of equal sides were false
/// alarms instead of 5 % (the column "not widened" in `docs/statistics.md`).
const WIDENING: f64 = 0.35;

/// The ratio of two sides with its standard error, by Student's t distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StudentRatio {
    /// The logarithm of the ratio.
    log: f64,
    /// Its standard error, widened for deviations from the normal distribution.
    error: f64,
    /// The degrees of freedom of the standard error.
    degrees: f64,
}

impl RunNoise {
    /// Compares `b` with `a`, each a list of runs with their samples, by the ratio of the geometric means of the runs'
    /// medians.
    ///
    /// Its variance is the variance between runs, divided by the number of runs of each side and pooled with the
    /// variance between the sides' own runs. If the samples of a side are noisier than those of the runs behind the
    /// estimate, the excess is added; if they are quieter, nothing is subtracted, since the difference of two estimates
    /// is unreliable. Degrees of freedom are Satterthwaite's (1946).
    ///
    /// `None` if a side or a run is empty, or a sample is not above zero.
    pub fn ratio(&self, a: &[Vec<f64>], b: &[Vec<f64>]) -> Option<StudentRatio> {
        let [a, b] = [self.estimate_side(a)?, self.estimate_side(b)?];
        let share = 1.0 / a.runs + 1.0 / b.runs;
        let degrees = self.degrees + a.runs + b.runs - 2.0;
        let spread = (self.stddev.powi(2) * self.degrees + a.squares + b.squares) / degrees * share;
        let excess = (a.sampling + b.sampling - self.sampling.powi(2) * share).max(0.0);
        let sum = VarianceEstimate::sum(&[
            VarianceEstimate { variance: spread, degrees },
            VarianceEstimate { variance: excess, degrees: (a.within + b.within).max(1.0) },
        ]);
        Some(StudentRatio {
            log: b.level - a.level,
            error: sum.variance.sqrt() * (1.0 + WIDENING * share / 2.0),
            degrees: sum.degrees,
        })
    }

    /// The ratio of another aspect of the samples than their medians, assumed to vary as much between runs. `log` and
    /// `sampling` are as in [`RunPrior::ratio`], and the interval is widened as in [`Self::ratio`]. `None` for the
    /// variance of single samples, as that is the variance of the runs behind the estimate.
    pub fn aspect_ratio(
        &self,
        log: f64,
        a: &[WeightedRun],
        b: &[WeightedRun],
        sampling: Option<VarianceEstimate>,
    ) -> Option<StudentRatio> {
        let prior = RunPrior::with_degrees(self.stddev, self.degrees)?;
        let share = 1.0 / a.len() as f64 + 1.0 / b.len() as f64;
        let sampling = sampling.unwrap_or(VarianceEstimate {
            variance: (self.single_sample().powi(2) - self.sampling.powi(2)).max(0.0) * share,
            degrees: self.degrees,
        });
        let ratio = prior.ratio(log, a, b, sampling, NoiseSource::Prior)?;
        Some(StudentRatio { error: ratio.error * (1.0 + WIDENING * share / 2.0), ..ratio })
    }

    /// The repeatability limit: the factor by which two single runs of one system differ at most, with the given
    /// confidence; 1 or more.
    pub fn repeatability_limit(&self, confidence: f64) -> f64 {
        let error = self.stddev * 2.0_f64.sqrt() * (1.0 + WIDENING);
        StudentRatio { log: 0.0, error, degrees: self.degrees }.half_width(confidence).exp()
    }

    /// The noise of a run's level due to its single sample.
    fn single_sample(&self) -> f64 {
        self.within.unwrap_or(self.sampling)
    }

    fn estimate_side(&self, runs: &[Vec<f64>]) -> Option<SideEstimate> {
        let levels: Vec<RunLevel> = runs.iter().map(|run| RunLevel::new(run)).collect::<Option<_>>()?;
        let count = levels.len() as f64;
        let single = self.single_sample().powi(2);
        let sampling = levels.iter().map(|run| run.sampling.unwrap_or(single)).sum::<f64>();
        (!levels.is_empty()).then(|| SideEstimate {
            runs: count,
            level: levels.iter().map(|run| run.level).sum::<f64>() / count,
            squares: sum_of_squares(&levels),
            sampling: sampling / count.powi(2),
            within: runs.iter().map(|run| run.len() as f64 - 1.0).sum(),
        })
    }
}

/// The estimates of one side.
struct SideEstimate {
    runs: f64,
    /// The mean of the runs' levels.
    level: f64,
    /// The sum of squares of the levels around their mean.
    squares: f64,
    /// The variance of the mean that is due to the samples.
    sampling: f64,
    /// Degrees of freedom within runs: samples minus runs.
    within: f64,
}

impl StudentRatio {
    /// `None` if a figure is not finite, also the ratio itself, or if there is a variance with less than one degree of
    /// freedom.
    pub(crate) fn new(log: f64, estimate: VarianceEstimate) -> Option<Self> {
        let VarianceEstimate { variance, degrees } = estimate;
        let valid =
            log.exp().is_normal() && variance.is_finite() && (variance == 0.0 || variance > 0.0 && degrees >= 1.0);
        valid.then(|| Self { log, error: variance.sqrt(), degrees })
    }

    /// The logarithm of the ratio.
    pub fn log(&self) -> f64 {
        self.log
    }

    /// The standard error of the logarithm; 0 if nothing varies.
    pub fn standard_error(&self) -> f64 {
        self.error
    }

    /// The degrees of freedom of the standard error; without meaning if that is 0.
    pub fn degrees(&self) -> f64 {
        self.degrees
    }

    /// The variance of the logarithm.
    pub fn variance(&self) -> VarianceEstimate {
        VarianceEstimate { variance: self.error.powi(2), degrees: self.degrees }
    }

    /// The p-value: the probability that equal sides are at least this far apart.
    pub fn p_value(&self) -> f64 {
        if self.log == 0.0 {
            return 1.0;
        }
        let student = self.student();
        student.map_or(0.0, |student| (2.0 * student.sf(self.log.abs() / self.error)).min(1.0))
    }

    /// The ratio and its interval; no interval if the confidence is not between 0 and 1, or an end is not finite.
    pub fn ratio(&self, confidence: f64) -> Ratio {
        let interval = (confidence > 0.0 && confidence < 1.0)
            .then(|| {
                let half = self.half_width(confidence);
                let [low, high] = [self.log - half, self.log + half].map(f64::exp);
                Interval { low, high, confidence }
            })
            .filter(|interval| interval.low.is_finite() && interval.high.is_finite());
        Ratio { estimate: self.log.exp(), interval, p_value: self.p_value() }
    }

    /// Half the width of the interval, on logarithms.
    pub fn half_width(&self, confidence: f64) -> f64 {
        self.student().map_or(0.0, |student| self.error * student_quantile(&student, (1.0 + confidence) / 2.0))
    }

    /// `None` if the standard error is zero.
    fn student(&self) -> Option<StudentsT> {
        (self.error > 0.0).then(|| StudentsT::new(0.0, 1.0, self.degrees).ok())?
    }
}

/// The quantile `p` of Student's t distribution. Above 1,000 degrees of freedom by the expansion around that of the
/// normal distribution (Abramowitz, Stegun 1964, 26.7.5): statrs loses digits there, and cannot have infinitely many.
pub(crate) fn student_quantile(student: &StudentsT, p: f64) -> f64 {
    let degrees = student.freedom();
    if degrees <= 1000.0 {
        return student.inverse_cdf(p);
    }
    let z = Normal::standard().inverse_cdf(p);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + (first + (second + third / degrees) / degrees) / degrees
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISE: RunNoise = RunNoise { stddev: 0.02, sampling: 0.01, within: None, degrees: 9.0 };

    #[test]
    fn every_aspect_of_two_runs_is_widened_alike() {
        let run = |value: f64| [WeightedRun { level: value.ln(), weight: 1.0 }];
        let none = VarianceEstimate { variance: 0.0, degrees: 1.0 };
        let mean = NOISE.aspect_ratio(1.1_f64.ln(), &run(100.0), &run(110.0), Some(none)).unwrap();
        let shift = NOISE.ratio(&[vec![100.0]], &[vec![110.0]]).unwrap();
        assert!((mean.standard_error() / shift.standard_error() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_run_per_side_has_the_noise_of_two_runs() {
        let ratio = NOISE.ratio(&[vec![100.0]], &[vec![110.0]]).unwrap();
        // t with 9 degrees of freedom: 2.262157 at 97.5 %.
        let half = 2.262_157 * 0.02 * 2.0_f64.sqrt() * 1.35;
        let interval = ratio.ratio(0.95).interval.unwrap();
        assert!(
            (interval.high / 1.1 - half.exp()).abs() < 1e-6 && (interval.low * half.exp() / 1.1 - 1.0).abs() < 1e-6
        );
        assert!((NOISE.repeatability_limit(0.95) - half.exp()).abs() < 1e-6);
        assert!(ratio.p_value() > 0.01 && ratio.p_value() < 0.05, "{}", ratio.p_value());
    }

    /// SciPy: `t(df).ppf(0.975)`, `2 * t(df).sf(2.5)`.
    #[test]
    fn quantiles_and_p_values_agree_with_scipy() {
        for (degrees, quantile, p_value) in [
            (18.5, 2.096_859_341_464_725, 0.022_015_968_967_270_743),
            (30.0, 2.042_272_456_301_237_8, 0.018_115_649_068_066_69),
            (1000.0, 1.9623390808264083, 0.012578567801090807),
            (1001.0, 1.9623367052808798, 0.012578408337689742),
            (1e5, 1.959_987_707_534_609_5, 0.012_420_919_192_559_051),
            (f64::INFINITY, 1.959_963_984_540_054, 0.012_419_330_651_552_265),
        ] {
            let ratio = StudentRatio::new(0.25, VarianceEstimate { variance: 0.01, degrees }).unwrap();
            let interval = ratio.ratio(0.95).interval.unwrap();
            assert!(
                ((interval.high / interval.low).ln() / 0.2 / quantile - 1.0).abs() < 1e-9,
                "{degrees}: {interval:?}"
            );
            assert!((ratio.p_value() / p_value - 1.0).abs() < 1e-9, "{degrees}: {}", ratio.p_value());
        }
    }

    #[test]
    fn an_interval_without_finite_ends_is_none() {
        let ratio = |variance| StudentRatio::new(0.0, VarianceEstimate { variance, degrees: 1.0 });
        assert_eq!(ratio(1e12).unwrap().ratio(0.95).interval, None);
        assert_eq!((ratio(f64::NAN), ratio(f64::INFINITY), ratio(-1.0)), (None, None, None));
        for confidence in [0.0, 1.0, 7.0, f64::NAN] {
            assert_eq!(ratio(1.0).unwrap().ratio(confidence).interval, None);
        }
        assert_eq!(StudentRatio::new(0.0, VarianceEstimate { variance: 1.0, degrees: 0.5 }), None);
        assert_eq!(StudentRatio::new(800.0, VarianceEstimate { variance: 1.0, degrees: 5.0 }), None);
    }

    #[test]
    fn noisy_samples_widen_the_interval_and_more_runs_narrow_it() {
        let width = |a: &[Vec<f64>], b: &[Vec<f64>]| {
            let interval = NOISE.ratio(a, b).unwrap().ratio(0.95).interval.unwrap();
            interval.high / interval.low
        };
        let (quiet, noisy) = (vec![99.9, 100.0, 100.1, 100.2], vec![80.0, 100.0, 110.0, 130.0]);
        let (quiet, noisy) = ([quiet.clone(), quiet], [noisy]);
        let one = width(&quiet[..1], &quiet[..1]);
        assert!(width(&quiet[..1], &noisy) > one);
        assert!(width(&quiet, &quiet) < one);
        let spread_runs = [vec![80.0], vec![100.0], vec![125.0]];
        assert!(
            width(&spread_runs, &spread_runs) > width(&[vec![100.0]], &[vec![100.0]]),
            "the noise between the sides' own runs counts too"
        );
    }

    #[test]
    fn without_noise_any_difference_is_certain() {
        let noiseless = RunNoise { stddev: 0.0, sampling: 0.0, within: None, degrees: 5.0 };
        let ratio = |b: f64| noiseless.ratio(&[vec![1.0]], &[vec![b]]).unwrap();
        assert_eq!((ratio(1.0).p_value(), ratio(1.01).p_value()), (1.0, 0.0));
        assert_eq!(ratio(2.0).ratio(0.95).interval.map(|interval| (interval.low, interval.high)), Some((2.0, 2.0)));
        assert_eq!(NOISE.ratio(&[], &[vec![1.0]]), None);
        assert_eq!(NOISE.ratio(&[vec![0.0]], &[vec![1.0]]), None);
    }
}
