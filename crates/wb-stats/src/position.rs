//! Where the runs of one system lie between those of two others.
//!
//! A run counts by its level, the mean or the median of its samples, on logarithms if all levels are above zero. The
//! variance of a level is the larger of two: the pooled variance between the runs of each system, and the variance that
//! the samples of a run cause. More samples or more runs therefore always decide more. If the values are single ones,
//! the variance is assumed.

use statrs::distribution::StudentsT;

use crate::replicates::median_variance;
use crate::student::student_quantile;
use crate::{CONFIDENCE, Interval, RunPrior, Samples};

/// The statistic of its samples that is the level of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelStatistic {
    Mean,
    Median,
}

/// More runs are not a practical answer.
const MAX_RUNS: usize = 100;

/// A position or distance as a share of the difference between two ends: 0 is the first end, 1 the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    pub estimate: f64,
    /// Its interval, by Student's t.
    pub interval: Interval,
}

/// The runs of two ends that differ, and the statistic by which they differ most clearly.
#[derive(Debug, Clone)]
pub struct Ends<'a> {
    runs: [&'a [Vec<f64>]; 2],
    statistic: LevelStatistic,
    prior: RunPrior,
    separation: f64,
}

impl<'a> Ends<'a> {
    /// `prior` is how much runs are assumed to differ where both ends are single values. `None` if an end has no runs or no
    /// difference from the other one.
    pub fn new(runs: [&'a [Vec<f64>]; 2], prior: RunPrior) -> Option<Self> {
        let by = |statistic| {
            let levels = Levels::new(&runs, statistic, prior)?;
            let separation = levels.distance([1, 0]).abs() / levels.variance.sqrt();
            // Without any difference, also without noise, there is no position.
            (separation > 0.0).then_some(Self { runs, statistic, prior, separation })
        };
        let candidates = [LevelStatistic::Mean, LevelStatistic::Median].into_iter().filter_map(by);
        candidates.reduce(|one, other| if other.separation > one.separation { other } else { one })
    }

    /// The difference of the ends, in standard deviations of a run's level.
    pub fn separation(&self) -> f64 {
        self.separation
    }

    /// The number of runs of each end that are needed to tell on which side of the middle a system lies that has
    /// `times` as many runs. Only for ends that are single values, and would be undecided even for a system at one end.
    /// `None` if the ends suffice, or if no practical number of runs would.
    pub fn required_runs(&self, times: usize) -> Option<usize> {
        let levels = Levels::new(&self.runs, self.statistic, self.prior).filter(|levels| levels.is_assumed)?;
        let decides = |runs: &usize| {
            let (of_ends, of_system) = (*runs as f64, (times * runs) as f64);
            let at_end = levels.share(0.0, 1.0 / of_system + 0.5 / of_ends);
            at_end.is_some_and(|share| share.interval.high < 0.5)
        };
        (!decides(&1)).then(|| (2..=MAX_RUNS).find(decides)).flatten()
    }

    /// The position of the runs of a system. `None` without runs.
    pub fn position(&self, runs: &[Vec<f64>]) -> Option<Share> {
        let levels = Levels::new(&[self.runs[0], self.runs[1], runs], self.statistic, self.prior)?;
        let from_middle = (levels.distance([2, 0]) + levels.distance([2, 1])) / 2.0;
        let count = levels.counts();
        levels.share(from_middle, 1.0 / count[2] + (1.0 / count[0] + 1.0 / count[1]) / 4.0).map(|share| share + 0.5)
    }

    /// The difference of the runs of one system from those of another one. `None` if one has no runs.
    pub fn difference(&self, from: &[Vec<f64>], to: &[Vec<f64>]) -> Option<Share> {
        let levels = Levels::new(&[self.runs[0], self.runs[1], from, to], self.statistic, self.prior)?;
        let count = levels.counts();
        levels.share(levels.distance([3, 2]), 1.0 / count[2] + 1.0 / count[3])
    }
}

impl std::ops::Add<f64> for Share {
    type Output = Self;

    fn add(self, offset: f64) -> Self {
        let Interval { low, high, confidence } = self.interval;
        Self {
            estimate: self.estimate + offset,
            interval: Interval { low: low + offset, high: high + offset, confidence },
        }
    }
}

/// The levels of the runs of several systems, and their common variance.
struct Levels {
    systems: Vec<Vec<f64>>,
    variance: f64,
    degrees: f64,
    /// Whether the variance is the assumed one, updated by the runs.
    is_assumed: bool,
}

impl Levels {
    /// The first two systems are the ends.
    fn new(systems: &[&[Vec<f64>]], statistic: LevelStatistic, prior: RunPrior) -> Option<Self> {
        let read = |runs: &&[Vec<f64>]| {
            runs.iter().map(|run| Samples::new(run).ok()).collect::<Option<Vec<_>>>().filter(|runs| !runs.is_empty())
        };
        let samples: Vec<Vec<Samples>> = systems.iter().map(read).collect::<Option<_>>()?;
        let on_logarithms = samples.iter().flatten().all(|run| run.min() > 0.0);
        let level = |run: &Samples| RunLevel::new(run, statistic, on_logarithms);
        let levels: Vec<Vec<RunLevel>> = samples.iter().map(|runs| runs.iter().map(level).collect()).collect();

        let systems: Vec<Vec<f64>> = levels.iter().map(|runs| runs.iter().map(|run| run.level).collect()).collect();
        let degrees = systems.iter().map(|runs| runs.len() - 1).sum::<usize>() as f64;
        let squares: f64 =
            systems.iter().map(|runs| runs.iter().map(|of| (of - mean(runs)).powi(2)).sum::<f64>()).sum();
        let sampling: Vec<f64> = levels.iter().flatten().filter_map(|run| run.sampling).collect();
        let by_samples = (!sampling.is_empty())
            .then(|| (mean(&sampling), samples.iter().flatten().map(|run| run.count() as f64 - 1.0).sum::<f64>()));
        let by_runs = (degrees > 0.0).then(|| (squares / degrees, degrees));
        let is_assumed = by_samples.is_none() && systems.iter().take(2).all(|runs| runs.len() == 1);
        let assumed = || {
            // The deviation is relative to the level.
            let unit = if on_logarithms {
                1.0
            } else {
                systems.iter().take(2).map(|runs| mean(runs).abs()).sum::<f64>() / 2.0
            };
            let variance = (prior.stddev() * unit).powi(2);
            let all = prior.degrees() + degrees;
            ((variance * prior.degrees() + squares) / all, all)
        };
        let known = [by_samples, by_runs].into_iter().flatten();
        let (variance, degrees) = if is_assumed {
            assumed()
        } else {
            known.reduce(|one, other| if other.0 > one.0 { other } else { one })?
        };
        Some(Self { systems, variance, degrees, is_assumed })
    }

    /// The distance of a system from another one.
    fn distance(&self, [to, from]: [usize; 2]) -> f64 {
        mean(&self.systems[to]) - mean(&self.systems[from])
    }

    fn counts(&self) -> Vec<f64> {
        self.systems.iter().map(|runs| runs.len() as f64).collect()
    }

    /// The share of the ends' difference that a distance makes up, where its variance is `times` times the variance of
    /// a level.
    fn share(&self, distance: f64, times: f64) -> Option<Share> {
        let whole = self.distance([1, 0]);
        let student = StudentsT::new(0.0, 1.0, self.degrees).ok()?;
        let half = student_quantile(&student, (1.0 + CONFIDENCE) / 2.0) * (self.variance * times).sqrt();
        let (estimate, half) = (distance / whole, half / whole.abs());
        let interval = Interval { low: estimate - half, high: estimate + half, confidence: CONFIDENCE };
        estimate.is_finite().then_some(Share { estimate, interval })
    }
}

/// The level of a run, and the variance of it that its samples cause; `None` for a single sample.
struct RunLevel {
    level: f64,
    sampling: Option<f64>,
}

impl RunLevel {
    fn new(run: &Samples, statistic: LevelStatistic, on_logarithms: bool) -> Self {
        let scale = |value: f64| if on_logarithms { value.ln() } else { value };
        match statistic {
            LevelStatistic::Mean => {
                let unit = if on_logarithms { run.mean() } else { 1.0 };
                let sampling = run.stddev().map(|stddev| (stddev / unit).powi(2) / run.count() as f64);
                Self { level: scale(run.mean()), sampling }
            }
            LevelStatistic::Median => {
                let scaled: Vec<f64> = run.in_order().iter().copied().map(scale).collect();
                let sampling = Samples::new(&scaled).ok().and_then(|scaled| median_variance(&scaled));
                Self { level: scale(run.median()), sampling }
            }
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of samples that alternate around a level by a fraction of it.
    fn runs(level: f64, fraction: f64, samples: usize, count: usize) -> Vec<Vec<f64>> {
        let sample = |index: usize| level * if index.is_multiple_of(2) { 1.0 + fraction } else { 1.0 - fraction };
        vec![(0..samples).map(sample).collect(); count]
    }

    fn position(level: f64, fraction: f64, samples: usize) -> Share {
        let [good, bad] = [1.0, 1.1].map(|level| runs(level, fraction, samples, 4));
        Ends::new([&good, &bad], RunPrior::NONE).unwrap().position(&runs(level, fraction, samples, 1)).unwrap()
    }

    #[test]
    fn positions_are_on_logarithms() {
        let middle = position(1.1_f64.sqrt(), 0.01, 10);
        assert!((middle.estimate - 0.5).abs() < 1e-3 && middle.interval.contains(0.5), "{middle:?}");
        let negative = [vec![vec![-10.0, -10.0]], vec![vec![10.0, 10.0]]];
        let ends = Ends::new([&negative[0], &negative[1]], RunPrior::NONE).unwrap();
        assert_eq!(ends.position(&[vec![-5.0, -5.0]]).unwrap().estimate, 0.25);
    }

    #[test]
    fn more_samples_decide_more() {
        let half_width = |samples| {
            let Interval { low, high, .. } = position(1.0, 0.2, samples).interval;
            (high - low) / 2.0
        };
        assert!(half_width(20) > 0.5 && half_width(2000) < 0.2, "{} {}", half_width(20), half_width(2000));
    }

    #[test]
    fn samples_without_deviation_have_an_exact_position() {
        for (level, expected) in [(1.0, 0.0), (1.1, 1.0)] {
            let Share { estimate, interval } = position(level, 0.0, 10);
            assert_eq!((estimate, interval.low, interval.high), (expected, expected, expected));
        }
    }

    #[test]
    fn single_values_are_as_uncertain_as_runs_are_assumed_to_be() {
        let [good, bad, between] = [1.0, 1.1, 1.0].map(|value| vec![vec![value]]);
        let exact = Ends::new([&good, &bad], RunPrior::NONE).unwrap();
        let share = exact.position(&between).unwrap();
        assert_eq!((share.interval.low, share.interval.high, exact.required_runs(2)), (0.0, 0.0, None));
        let prior = RunPrior::new(0.05).unwrap();
        let assumed = Ends::new([&good, &bad], prior).unwrap();
        // t with 30 degrees of freedom at 97.5 % is 2.0423: 2.0423·0.05·√1.5/ln(1.1) on either side.
        let Share { estimate, interval } = assumed.position(&between).unwrap();
        assert!(estimate.abs() < 1e-12 && (interval.high - 1.312).abs() < 0.001, "{interval:?}");
        assert!(interval.high > 0.5, "undecided");
        // (2·2.0423·0.05/ln(1.1))² is 4.6.
        assert_eq!(assumed.required_runs(2), Some(5));
        let far = vec![vec![2.0]];
        assert_eq!(Ends::new([&good, &far], prior).unwrap().required_runs(2), None);
        // Runs of the ends show how much they differ.
        let [good, bad] = [1.0, 1.1].map(|level| vec![vec![level], vec![level * 1.001], vec![level * 0.999]]);
        let own = Ends::new([&good, &bad], prior).unwrap();
        assert!(own.position(&between).unwrap().interval.high < 0.1 && own.required_runs(2).is_none());
    }

    #[test]
    fn the_variation_between_runs_counts() {
        let of = |levels: [f64; 4]| levels.map(|level| vec![level; 10]).to_vec();
        let (good, bad) = (of([1.0, 1.03, 0.97, 1.0]), of([1.1, 1.13, 1.07, 1.1]));
        let ends = Ends::new([&good, &bad], RunPrior::NONE).unwrap();
        let one = ends.position(&[vec![1.0; 10]]).unwrap().interval;
        assert!(one.high > 0.5, "{one:?}");
        let four = ends.position(&good).unwrap().interval;
        assert!(four.high < 0.5, "{four:?}");
        let difference = ends.difference(&good, &bad).unwrap();
        assert!((difference.estimate - 1.0).abs() < 1e-12 && difference.interval.low > 0.0);
        assert!(ends.difference(&good, &good).unwrap().interval.contains(0.0));
    }

    #[test]
    fn equal_ends_have_no_positions_between_them() {
        let end = runs(1.0, 0.0, 5, 2);
        assert!(Ends::new([&end, &end], RunPrior::NONE).is_none());
        assert!(Ends::new([&end, &[]], RunPrior::NONE).is_none());
    }
}
