//! Few runs a side, where it is known from elsewhere how far runs of one system lie apart.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::replicates::{RunLevel, RunNoise, sum_of_squares};
use crate::{Interval, Ratio};

/// By so much the interval between two single runs is widened, as a share; with more runs by less, since their mean is
/// nearer to normal. Runs are seldom normal: without it, sides that do not differ were said to in up to 12 % of all
/// comparisons instead of 5 % (the column "not widened" in `docs/statistics.md`).
const WIDENING: f64 = 0.35;

/// By which factor two sides differ, and how well that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StudentRatio {
    /// The logarithm of the factor.
    log: f64,
    /// Its standard error, widened for what is not normal.
    error: f64,
    /// The degrees of freedom of that.
    degrees: f64,
}

impl RunNoise {
    /// How `b` stands to `a`, each a list of runs with their samples: the ratio of the geometric means of the runs'
    /// medians.
    ///
    /// Its variance is that of runs, for as many as each side has; runs of the sides themselves say what they know of
    /// it too. Samples of a side that are noisier than those of the runs that it is known from add what they have
    /// more; samples that are quieter take nothing away, for the difference of two estimates is a bad one. Degrees of
    /// freedom are Satterthwaite's (1946).
    ///
    /// None where a side or a run is empty, or a sample is not above zero.
    pub fn ratio(&self, a: &[Vec<f64>], b: &[Vec<f64>]) -> Option<StudentRatio> {
        let [a, b] = [self.estimate_side(a)?, self.estimate_side(b)?];
        let share = 1.0 / a.runs + 1.0 / b.runs;
        let degrees = self.degrees + a.runs + b.runs - 2.0;
        let spread = (self.stddev.powi(2) * self.degrees + a.squares + b.squares) / degrees * share;
        let excess = (a.sampling + b.sampling - self.sampling.powi(2) * share).max(0.0);
        let variance = spread + excess;
        let uncertain = spread.powi(2) / degrees + excess.powi(2) / (a.within + b.within).max(1.0);
        Some(StudentRatio {
            log: b.level - a.level,
            error: variance.sqrt() * (1.0 + WIDENING * share / 2.0),
            // Without any variance nothing is uncertain.
            degrees: if uncertain > 0.0 { variance.powi(2) / uncertain } else { degrees },
        })
    }

    /// By less than which factor two single runs of one system differ, with a confidence; 1 or more.
    pub fn repeatability_limit(&self, confidence: f64) -> f64 {
        let error = self.stddev * 2.0_f64.sqrt() * (1.0 + WIDENING);
        StudentRatio { log: 0.0, error, degrees: self.degrees }.half_width(confidence).exp()
    }

    fn estimate_side(&self, runs: &[Vec<f64>]) -> Option<SideEstimate> {
        let levels: Vec<RunLevel> = runs.iter().map(|run| RunLevel::of(run)).collect::<Option<_>>()?;
        let count = levels.len() as f64;
        let single = self.within.unwrap_or(self.sampling).powi(2);
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

struct SideEstimate {
    /// How many.
    runs: f64,
    /// The mean of their levels.
    level: f64,
    /// The sum of the levels' squares around that.
    squares: f64,
    /// The variance that the mean has from samples.
    sampling: f64,
    /// Samples less runs.
    within: f64,
}

impl StudentRatio {
    /// How likely sides that differ in nothing are so far apart.
    pub fn p_value(&self) -> f64 {
        if self.log == 0.0 {
            return 1.0;
        }
        let student = self.student();
        student.map_or(0.0, |student| (2.0 * student.sf(self.log.abs() / self.error)).min(1.0))
    }

    /// The factor and its interval.
    pub fn ratio(&self, confidence: f64) -> Ratio {
        let half = self.half_width(confidence);
        let [low, high] = [self.log - half, self.log + half].map(f64::exp);
        let interval = Some(Interval { low, high, confidence });
        Ratio { estimate: self.log.exp(), interval, p_value: self.p_value() }
    }

    /// The degrees of freedom of the interval.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.degrees
    }

    fn half_width(&self, confidence: f64) -> f64 {
        self.student().map_or(0.0, |student| self.error * student.inverse_cdf((1.0 + confidence) / 2.0))
    }

    /// None where there is no error at all.
    fn student(&self) -> Option<StudentsT> {
        (self.error > 0.0).then(|| StudentsT::new(0.0, 1.0, self.degrees).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISE: RunNoise = RunNoise { stddev: 0.02, sampling: 0.01, within: None, degrees: 9.0 };

    #[test]
    fn one_run_a_side_has_the_spread_of_two_runs() {
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

    #[test]
    fn noisy_samples_widen_and_more_runs_narrow() {
        let width = |a: &[Vec<f64>], b: &[Vec<f64>]| {
            let interval = NOISE.ratio(a, b).unwrap().ratio(0.95).interval.unwrap();
            interval.high / interval.low
        };
        let (quiet, noisy) = (vec![99.9, 100.0, 100.1, 100.2], vec![80.0, 100.0, 110.0, 130.0]);
        let (quiet, noisy) = ([quiet.clone(), quiet], [noisy]);
        let one = width(&quiet[..1], &quiet[..1]);
        assert!(width(&quiet[..1], &noisy) > one);
        assert!(width(&quiet, &quiet) < one);
        let apart = [vec![80.0], vec![100.0], vec![125.0]];
        assert!(width(&apart, &apart) > width(&[vec![100.0]], &[vec![100.0]]), "the sides know of their noise too");
    }

    #[test]
    fn without_noise_any_difference_is_sure() {
        let still = RunNoise { stddev: 0.0, sampling: 0.0, within: None, degrees: 5.0 };
        let ratio = |b: f64| still.ratio(&[vec![1.0]], &[vec![b]]).unwrap();
        assert_eq!((ratio(1.0).p_value(), ratio(1.01).p_value()), (1.0, 0.0));
        assert_eq!(ratio(2.0).ratio(0.95).interval.map(|interval| (interval.low, interval.high)), Some((2.0, 2.0)));
        assert_eq!(NOISE.ratio(&[], &[vec![1.0]]), None);
        assert_eq!(NOISE.ratio(&[vec![0.0]], &[vec![1.0]]), None);
    }
}
