//! How large a share is, from how often it was seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

use crate::Interval;

/// How often something happened, and how large a share that makes it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proportion {
    /// So often.
    pub count: usize,
    /// Of so many.
    pub total: usize,
    /// Where the share lies, from 0 to 1.
    pub interval: Interval,
}

impl Proportion {
    /// With the exact interval of Clopper and Pearson (1934): never less sure than the confidence. None of nothing, or
    /// where there are more than all.
    pub fn new(count: usize, of: usize, confidence: f64) -> Option<Self> {
        let tail = (1.0 - confidence) / 2.0;
        let quantile = |a: usize, b: usize, p: f64| Some(Beta::new(a as f64, b as f64).ok()?.inverse_cdf(p));
        let misses = of.checked_sub(count).filter(|_| of > 0)?;
        let low = if count == 0 { 0.0 } else { quantile(count, misses + 1, tail)? };
        let high = if misses == 0 { 1.0 } else { quantile(count + 1, misses, 1.0 - tail)? };
        Some(Self { count, total: of, interval: Interval { low, high, confidence } })
    }

    /// From 0 to 1.
    pub fn fraction(&self) -> f64 {
        self.count as f64 / self.total as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the sums of binomial probabilities reach 2.5 %.
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
