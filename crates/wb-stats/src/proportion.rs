//! Proportions and their confidence intervals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

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

#[cfg(test)]
mod tests {
    use super::*;

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
