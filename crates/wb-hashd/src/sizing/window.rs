//! When a round has been observed long enough: its rate, or its latency, has converged.
//!
//! Once a second, a line is fitted to the last readings (least squares). The figure has converged if the line is nearly
//! level, the deviations from it neither grow nor shrink, and its slopes of the last seconds do not all have one sign.

use std::collections::VecDeque;

use super::{RoundOutcome, Stage};

/// Figures of a period of about a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub rps: f64,
    /// Controlled quantile, in seconds.
    pub latency: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Rps,
    Latency,
}

/// When a window ends. Lengths are numbers of readings.
#[derive(Clone, Copy, Debug)]
struct WindowRule {
    figure: Figure,
    /// Readings that are fitted, and averaged.
    period: usize,
    /// How often among them the figure must have converged.
    converges: usize,
    min: usize,
    max: usize,
    /// Maximum slope, and slope of the deviations, per reading and relative to the mean.
    slope: f64,
    error_slope: f64,
    /// A rate that is nearly full, or far from it, ends the window early.
    ends_early: bool,
}

impl WindowRule {
    fn new(stage: Stage, scale: f64) -> Self {
        let memory = Self {
            figure: Figure::Rps,
            period: 15,
            converges: 5,
            min: 30,
            max: 90,
            slope: 0.01,
            error_slope: 0.025,
            ends_early: true,
        };
        let rule = match stage {
            Stage::HashSize => Self {
                figure: Figure::Latency,
                period: 10,
                converges: 3,
                min: 10,
                max: 60,
                slope: 0.025,
                error_slope: 0.05,
                ends_early: false,
            },
            Stage::RpsMax => Self { min: 15, ends_early: false, ..memory },
            Stage::MemoryUp | Stage::MemoryBisect | Stage::MemoryVerify => memory,
            Stage::MemoryRefine => Self { max: 120, ends_early: false, ..memory },
        };
        let scaled = |readings: usize, least: usize| ((readings as f64 * scale).round() as usize).max(least);
        Self {
            period: scaled(rule.period, 4),
            converges: scaled(rule.converges, 2),
            min: scaled(rule.min, 4),
            max: scaled(rule.max, 8),
            ..rule
        }
    }
}

/// A rate of at least this part of the target that does not fall is full.
const FULL: f64 = 0.95;
/// A falling rate of less than this part of the target will not recover.
const HOPELESS: f64 = 0.5;
/// Slopes within this, relative to the mean, have no sign.
const LEVEL: f64 = 1e-4;

/// The readings of a round.
#[derive(Clone, Debug)]
pub struct Window {
    rule: WindowRule,
    target: Option<f64>,
    readings: VecDeque<Reading>,
    deviations: VecDeque<f64>,
    slopes: VecDeque<f64>,
    converged: VecDeque<bool>,
    count: usize,
}

impl Window {
    /// `target` is the rate to reach; `scale` multiplies the lengths of the window.
    pub fn new(stage: Stage, target: Option<f64>, scale: f64) -> Self {
        Self {
            rule: WindowRule::new(stage, scale),
            target,
            readings: VecDeque::new(),
            deviations: VecDeque::new(),
            slopes: VecDeque::new(),
            converged: VecDeque::new(),
            count: 0,
        }
    }

    /// Returns the outcome if this was the last reading.
    pub fn push(&mut self, reading: Reading) -> Option<RoundOutcome> {
        let period = self.rule.period;
        self.count += 1;
        push_within(&mut self.readings, reading, period);
        let (is_level, streak) = self.fit();
        push_within(&mut self.converged, self.count >= self.rule.min && is_level && streak == Streak::None, period);
        let is_converged = self.converged.iter().filter(|converged| **converged).count() >= self.rule.converges;
        let is_over = is_converged || self.count >= self.rule.max || self.ends_early(streak);
        is_over.then(|| self.outcome(is_converged))
    }

    /// Whether the figure is level, and whether it rises or falls nevertheless.
    fn fit(&mut self) -> (bool, Streak) {
        let period = self.rule.period;
        let values: Vec<f64> = self.readings.iter().map(|reading| self.rule.figure.of(reading)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let Some((line, true)) = Line::fit(&values).map(|line| (line, mean > 0.0)) else {
            return (false, Streak::None);
        };
        push_within(&mut self.deviations, line.mean_deviation(&values), period);
        let deviations: Vec<f64> = self.deviations.iter().copied().collect();
        let Some(deviation) = Line::fit(&deviations) else { return (false, Streak::None) };
        let slope = line.slope / mean;
        push_within(&mut self.slopes, slope, period);
        let is_level = slope.abs() <= self.rule.slope && (deviation.slope / mean).abs() <= self.rule.error_slope;
        (is_level, self.streak(slope))
    }

    /// The sign of nearly all slopes, if it is that of the last one.
    fn streak(&self, slope: f64) -> Streak {
        let signs = self.slopes.iter().map(|slope| i64::from(*slope > LEVEL) - i64::from(*slope < -LEVEL));
        let sum: i64 = signs.sum();
        if sum.unsigned_abs() as usize <= self.rule.period / 2 {
            Streak::None
        } else if sum > 0 && slope > 0.0 {
            Streak::Rising
        } else if sum < 0 && slope < 0.0 {
            Streak::Falling
        } else {
            Streak::None
        }
    }

    fn ends_early(&self, streak: Streak) -> bool {
        let Some(target) = self.target.filter(|_| self.rule.ends_early && self.count >= self.rule.period) else {
            return false;
        };
        let rps = self.mean(Figure::Rps);
        let is_full = rps >= target * FULL && streak != Streak::Falling;
        let is_hopeless = rps < target * HOPELESS && streak == Streak::Falling && self.count >= 2 * self.rule.period;
        is_full || is_hopeless
    }

    fn mean(&self, figure: Figure) -> f64 {
        self.readings.iter().map(|reading| figure.of(reading)).sum::<f64>() / self.readings.len() as f64
    }

    fn outcome(&self, is_converged: bool) -> RoundOutcome {
        RoundOutcome::Measured {
            rps: self.mean(Figure::Rps),
            latency: self.mean(Figure::Latency),
            // A rate that is clearly full or not needs no further precision.
            is_converged: is_converged || self.count < self.rule.max,
        }
    }
}

impl Figure {
    fn of(self, reading: &Reading) -> f64 {
        match self {
            Self::Rps => reading.rps,
            Self::Latency => reading.latency,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streak {
    None,
    Rising,
    Falling,
}

/// A line fitted to values at 0, 1, 2 …
#[derive(Clone, Copy, Debug)]
struct Line {
    slope: f64,
    start: f64,
}

impl Line {
    /// Least squares; `None` for fewer than three values.
    fn fit(values: &[f64]) -> Option<Self> {
        if values.len() < 3 {
            return None;
        }
        let count = values.len() as f64;
        let middle = (count - 1.0) / 2.0;
        let mean = values.iter().sum::<f64>() / count;
        let offsets = || (0..values.len()).map(|index| index as f64 - middle);
        let covariance: f64 = offsets().zip(values).map(|(offset, value)| offset * (value - mean)).sum();
        let slope = covariance / offsets().map(|offset| offset * offset).sum::<f64>();
        Some(Self { slope, start: mean - slope * middle })
    }

    fn mean_deviation(&self, values: &[f64]) -> f64 {
        let distance = |(index, value): (usize, &f64)| (value - (self.start + self.slope * index as f64)).abs();
        values.iter().enumerate().map(distance).sum::<f64>() / values.len() as f64
    }
}

fn push_within<T>(values: &mut VecDeque<T>, value: T, length: usize) {
    values.push_back(value);
    if values.len() > length {
        values.pop_front();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// The outcome and the number of readings, of a rate over time with noise.
    fn observe(stage: Stage, target: Option<f64>, noise: f64, rps: impl Fn(usize) -> f64) -> (f64, bool, usize) {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut window = Window::new(stage, target, 1.0);
        for index in 0.. {
            let rps = rps(index) * (1.0 + noise * rng.random_range(-1.0..1.0));
            let outcome = window.push(Reading { rps, latency: 0.05 });
            if let Some(RoundOutcome::Measured { rps, is_converged, .. }) = outcome {
                return (rps, is_converged, index + 1);
            }
        }
        unreachable!("a window has a maximum length")
    }

    #[test]
    fn line_is_that_of_least_squares() {
        let line = Line::fit(&[1.0, 3.0, 5.0, 7.0]).unwrap();
        assert_eq!((line.slope, line.start), (2.0, 1.0));
        assert_eq!(line.mean_deviation(&[1.0, 3.0, 5.0, 9.0]), 0.5);
        assert!(Line::fit(&[1.0, 2.0]).is_none());
    }

    #[test]
    fn level_rate_converges_soon_after_the_minimum() {
        let (rps, is_converged, count) = observe(Stage::MemoryRefine, Some(500.0), 0.05, |_| 400.0);
        assert!(is_converged && (30..60).contains(&count), "{count}");
        assert!((rps / 400.0 - 1.0).abs() < 0.02, "{rps}");
    }

    #[test]
    fn rising_rate_is_waited_for() {
        let (rps, is_converged, count) =
            observe(Stage::MemoryRefine, Some(1000.0), 0.01, |second| 400.0 + 8.0 * second.min(60) as f64);
        assert!(is_converged && count > 60, "{count}");
        assert!(rps > 850.0, "{rps}");
    }

    #[test]
    fn rate_that_keeps_changing_ends_at_the_maximum() {
        let (_, is_converged, count) =
            observe(Stage::MemoryRefine, Some(1000.0), 0.0, |second| 400.0 + 10.0 * second as f64);
        assert_eq!((is_converged, count), (false, 120));
    }

    #[test]
    fn full_rate_and_hopeless_rate_end_early() {
        assert_eq!(observe(Stage::MemoryUp, Some(400.0), 0.01, |_| 400.0).2, 15);
        let (rps, _, count) = observe(Stage::MemoryBisect, Some(400.0), 0.0, |second| 300.0 - 5.0 * second as f64);
        assert!(rps < 200.0 && (30..40).contains(&count), "{rps} {count}");
    }

    #[test]
    fn shorter_windows_have_a_minimum() {
        let mut window = Window::new(Stage::MemoryUp, Some(400.0), 0.1);
        let count = (1..).find(|_| window.push(Reading { rps: 400.0, latency: 0.05 }).is_some());
        assert_eq!(count, Some(4));
    }

    #[test]
    fn nothing_completed_never_converges() {
        let (rps, is_converged, count) = observe(Stage::MemoryUp, Some(400.0), 0.0, |_| 0.0);
        assert_eq!((rps, is_converged, count), (0.0, false, 90));
    }
}
