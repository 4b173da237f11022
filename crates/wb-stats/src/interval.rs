use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Samples;

/// The confidence promised for an interval unless told otherwise
pub const CONFIDENCE: f64 = 0.95;

/// The confidence at which the median's interval is taken when the samples themselves decided how many there are.
///
/// Stopping at the first narrow interval favours those that are narrow by chance: taken at 95 %, they hold for as few
/// as 93 %. Taken at 31/32, the most that 6 samples can give, 95 % remains; the table in `docs/statistics.md` shows
/// for which populations.
pub const STOPPING_CONFIDENCE: f64 = 1.0 - 1.0 / 32.0;

/// Two order statistics and how sure they are to have the population's quantile between them
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The lower end, itself a sample
    pub low: f64,
    /// The upper end, itself a sample
    pub high: f64,
    /// The probability reached, as a fraction of 1; at least the one asked for, since ranks are whole numbers
    pub confidence: f64,
}

impl Interval {
    /// Half the width relative to a centre, in percent.
    ///
    /// An interval without width is 0 % wide wherever it lies; otherwise `None` where the centre is 0, since no width
    /// is small beside nothing.
    pub fn half_width_percent(&self, centre: f64) -> Option<f64> {
        let half = (self.high - self.low) / 2.0;
        if half == 0.0 {
            return Some(0.0);
        }
        Some(half / centre.abs() * 100.0).filter(|percent| percent.is_finite())
    }

    /// Whether a value lies between the ends, the ends included
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The distribution-free interval of the population's median. `None` when there are too few samples for the
/// confidence: fewer than 6 for 95 %. See [`quantile_interval`].
pub fn median_interval(samples: &Samples, confidence: f64) -> Option<Interval> {
    quantile_interval(samples, 0.5, confidence)
}

/// The distribution-free interval of the population's quantile `p`, between two order statistics.
///
/// How many of n samples lie below the quantile is binomial whatever the distribution (Thompson 1936; David, Nagaraja,
/// Order Statistics, 3rd ed., section 7.1). Each end is the innermost order statistic that errs with at most half of
/// 1 − confidence, so that either end also stands alone as a one-sided bound. Exact for a continuous population, at
/// least as sure for one with ties. It presumes independent samples and a number of them that was fixed beforehand.
///
/// `None` when no order statistic reaches the confidence on one side, or when `p` or the confidence is not between
/// 0 and 1.
pub fn quantile_interval(samples: &Samples, p: f64, confidence: f64) -> Option<Interval> {
    let within = |x: f64| x > 0.0 && x < 1.0;
    if !within(p) || !within(confidence) {
        return None;
    }
    // Confidences like 0.9375 are met exactly; rounding must not lose them.
    let tail = (1.0 - confidence) / 2.0 * (1.0 + 1e-12);
    let n = samples.count();
    let below = Binomial::new(n, p);

    // Ranks count from 1. The lower end errs when fewer than `low` samples are below the quantile, the upper end when
    // `high` or more are.
    let (mut low, mut low_errs) = (below.first, 0.0);
    for mass in &below.masses {
        if low_errs + mass > tail {
            break;
        }
        (low, low_errs) = (low + 1, low_errs + mass);
    }
    let (mut high, mut high_errs) = (below.first + below.masses.len(), 0.0);
    for mass in below.masses.iter().rev() {
        if high_errs + mass > tail {
            break;
        }
        (high, high_errs) = (high - 1, high_errs + mass);
    }
    if low == 0 || high > n {
        return None;
    }
    Some(Interval {
        low: samples.sorted()[low - 1],
        high: samples.sorted()[high - 1],
        confidence: 1.0 - low_errs - high_errs,
    })
}

/// The binomial distribution where it is not negligible
struct Binomial {
    first: usize,
    masses: Vec<f64>,
}

impl Binomial {
    /// From the mode outwards by the ratio of neighbours, then normalised: nothing underflows however large n is
    fn new(n: usize, p: f64) -> Self {
        const NEGLIGIBLE: f64 = 1e-20;
        let odds = p / (1.0 - p);
        let mode = (((n + 1) as f64 * p) as usize).min(n);
        let falling = |mass: &f64| *mass > NEGLIGIBLE;
        let lower = (0..mode).rev().scan(1.0, |mass, k| {
            *mass *= (k + 1) as f64 / (n - k) as f64 / odds;
            Some(*mass)
        });
        let upper = (mode..n).scan(1.0, |mass, k| {
            *mass *= (n - k) as f64 / (k + 1) as f64 * odds;
            Some(*mass)
        });
        let mut masses: Vec<f64> = lower.take_while(falling).collect();
        let first = mode - masses.len();
        masses.reverse();
        masses.push(1.0);
        masses.extend(upper.take_while(falling));
        let sum: f64 = masses.iter().sum();
        masses.iter_mut().for_each(|mass| *mass /= sum);
        Self { first, masses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(n: usize, p: f64, confidence: f64) -> Option<(usize, usize, f64)> {
        let ranks: Vec<f64> = (1..=n).map(|rank| rank as f64).collect();
        let interval = quantile_interval(&Samples::new(&ranks).unwrap(), p, confidence)?;
        Some((interval.low as usize, interval.high as usize, interval.confidence))
    }

    #[test]
    fn a_median_has_an_interval_at_95_percent_from_6_samples_on() {
        assert_eq!(ranks(5, 0.5, 0.95), None);
        let (low, high, reached) = ranks(6, 0.5, 0.95).unwrap();
        assert_eq!((low, high), (1, 6));
        assert!((reached - 0.96875).abs() < 1e-12);
    }

    #[test]
    fn a_confidence_that_is_met_exactly_is_met() {
        assert_eq!(ranks(5, 0.5, 0.9375).map(|(low, high, _)| (low, high)), Some((1, 5)));
    }

    #[test]
    fn a_confidence_or_quantile_out_of_range_has_no_interval() {
        for (p, confidence) in [(0.5, 1.0), (0.5, 0.0), (0.5, f64::NAN), (0.0, 0.9), (1.0, 0.9), (f64::NAN, 0.9)] {
            assert_eq!(ranks(1000, p, confidence), None);
        }
    }

    #[test]
    fn the_width_beside_a_median_of_zero_is_undefined_unless_there_is_none() {
        let interval = |low, high| Interval { low, high, confidence: 0.95 };
        assert_eq!(interval(-1.0, 1.0).half_width_percent(0.0), None);
        assert_eq!(interval(0.0, 0.0).half_width_percent(0.0), Some(0.0));
        assert_eq!(interval(-103.0, -97.0).half_width_percent(-100.0), Some(3.0));
    }
}
