//! Proportions and their confidence intervals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF, Normal};

use crate::Interval;

/// A proportion with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proportion {
    /// The number of occurrences.
    pub count: usize,
    /// The number of trials.
    pub total: usize,
    /// The confidence interval of the proportion, from 0 to 1.
    pub interval: Interval,
}

impl Proportion {
    /// Computes the exact interval of Clopper and Pearson (1934), whose confidence is at least the requested one.
    /// `None` if there are no trials, or fewer trials than occurrences.
    pub fn new(count: usize, of: usize, confidence: f64) -> Option<Self> {
        let tail = (1.0 - confidence) / 2.0;
        let quantile = |a: usize, b: usize, p: f64| Some(Beta::new(a as f64, b as f64).ok()?.inverse_cdf(p));
        let misses = of.checked_sub(count).filter(|_| of > 0)?;
        let low = if count == 0 { 0.0 } else { quantile(count, misses + 1, tail)? };
        let high = if misses == 0 { 1.0 } else { quantile(count + 1, misses, 1.0 - tail)? };
        Some(Self { count, total: of, interval: Interval { low, high, confidence } })
    }

    /// The proportion as a fraction, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        self.count as f64 / self.total as f64
    }
}

/// The difference of two proportions with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProportionDifference {
    /// The second proportion minus the first, from -1 to 1.
    pub difference: f64,
    /// Its confidence interval.
    pub interval: Interval,
}

impl ProportionDifference {
    /// Compares `b` occurrences in `m` trials with `a` in `n`: the interval combines those of Wilson (Newcombe 1998, method
    /// 10). `None` if a side has no trials, or fewer trials than occurrences.
    pub fn new([a, n]: [usize; 2], [b, m]: [usize; 2], confidence: f64) -> Option<Self> {
        if n == 0 || m == 0 || a > n || b > m {
            return None;
        }
        let z = Normal::standard().inverse_cdf((1.0 + confidence) / 2.0);
        let wilson = |count: usize, of: usize| {
            let (share, of) = (count as f64 / of as f64, of as f64);
            let half = z * (share * (1.0 - share) / of + z * z / (4.0 * of * of)).sqrt();
            let [low, high] = [-half, half].map(|half| (share + z * z / (2.0 * of) + half) / (1.0 + z * z / of));
            (share, (share - low).max(0.0), (high - share).max(0.0))
        };
        let ((first, first_down, first_up), (second, second_down, second_up)) = (wilson(a, n), wilson(b, m));
        let difference = second - first;
        let [low, high] = [difference - second_down.hypot(first_up), difference + second_up.hypot(first_down)];
        Some(Self { difference, interval: Interval { low: low.max(-1.0), high: high.min(1.0), confidence } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of Newcombe (1998), table II.
    #[test]
    fn the_interval_of_a_difference_is_newcombes() {
        for (a, b, low, high) in [
            ([48, 80], [56, 70], 0.0524, 0.3339),
            ([3, 10], [9, 10], 0.1705, 0.8090),
            ([0, 10], [10, 10], 0.6075, 1.0),
            ([0, 29], [0, 20], -0.1170, 0.1611),
        ] {
            let found = ProportionDifference::new(a, b, 0.95).unwrap();
            let Interval { low: found_low, high: found_high, .. } = found.interval;
            let near = |one: f64, other: f64| (one - other).abs() < 6e-5;
            assert!(near(found_low, low) && near(found_high, high), "{a:?} {b:?}: {found:?}");
        }
        assert_eq!(ProportionDifference::new([0, 0], [1, 2], 0.95), None);
    }

    /// The bounds are where the sums of binomial probabilities reach 2.5 %.
    #[test]
    fn the_interval_is_that_of_the_binomial() {
        for (count, of, low, high) in [
            (0, 10, 0.0, 0.308_497_103),
            (3, 20, 0.032_070_937, 0.378_926_827),
            (50, 1000, 0.037_335_398, 0.065_390_488),
            (7, 7, 0.590_383_603, 1.0),
        ] {
            let interval = Proportion::new(count, of, 0.95).unwrap().interval;
            assert!((interval.low - low).abs() < 1e-6 && (interval.high - high).abs() < 1e-6, "{count}: {interval:?}");
        }
        assert_eq!((Proportion::new(0, 0, 0.95), Proportion::new(2, 1, 0.95)), (None, None));
    }
}
