//! The tails of two sides: a quantile far from the median, and whether it differs.

use crate::{FisherExact, Ratio, Samples, quantile_ratio};

/// The level of the tail that a number of samples per side supports: the 75 % quantile from 13 samples on, the 90 %
/// quantile from 36 on. The lower tail is at 1 less this level.
///
/// With fewer samples, all of them are below the quantile in more than 2.5 % of cases (0.75¹³, 0.9³⁶), so that it has no
/// upper limit at a confidence of 95 %.
pub fn tail_level(samples: usize) -> Option<f64> {
    match samples {
        0..13 => None,
        13..36 => Some(0.75),
        36.. => Some(0.9),
    }
}

/// The ratio of the quantile `q` of `b` to that of `a`, with its interval from [`quantile_ratio`] and its p-value from
/// [`pooled_quantile_p`].
///
/// The interval inverts another test than that of the p-value, so that in rare cases only one of them excludes equality.
/// `None` if a quantile is not above zero.
pub fn tail_ratio(a: &Samples, b: &Samples, q: f64, confidence: f64) -> Option<Ratio> {
    let ratio = quantile_ratio(a, b, q, confidence)?;
    let p_value = pooled_quantile_p(a.in_order(), b.in_order(), q);
    Some(Ratio { estimate: ratio.estimate, interval: ratio.interval, p_value })
}

/// The two-sided p-value of whether two sides have as many samples in the tail beyond the quantile `q` of both sides
/// together: above it for `q` of at least 0.5, below it otherwise.
///
/// The median test of Westenberg (1948) and Mood (1950) at another quantile, by Fisher's exact test (Gibbons,
/// Chakraborti, Nonparametric Statistical Inference, 5th ed., section 6.4). Exact for equal populations of any shape,
/// also with ties and with the quantile in a gap: the tail depends on the samples of both sides together, not on which
/// side they are from. 1 if a side is empty, or if `q` is not between 0 and 1.
///
/// At a nominal 5 %, equal sides are significant in 1 to 3.5 % of simulated comparisons. The interval of [`quantile_ratio`]
/// excludes 1 in 1 to 3 % of them and finds a slow fifth of the samples more often (82 instead of 71 % with 36 samples
/// a side), but a p-value by inverting it would not be exact, and could not be below 4.5 % with 36 samples a side
/// (2 · 0.9³⁶), too much for any adjustment for several tests.
pub fn pooled_quantile_p(a: &[f64], b: &[f64], q: f64) -> f64 {
    if !(q > 0.0 && q < 1.0) || a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let (sign, level) = if q < 0.5 { (-1.0, 1.0 - q) } else { (1.0, q) };
    let [a, b] = [a, b].map(|side| side.iter().map(|sample| sign * sample).collect::<Vec<_>>());
    let tail = PooledTail::new(&a, &b, level);
    let test = FisherExact::new(tail.count(&a), a.len(), tail.count(&b), b.len());
    test.map_or(1.0, |test| test.p_value)
}

/// The upper tail of both sides together.
struct PooledTail {
    threshold: f64,
    /// Whether samples equal to the threshold are part of the tail.
    inclusive: bool,
}

impl PooledTail {
    /// Of the two tails with and without the samples that equal the quantile, the one whose size is closer to what the
    /// level says: with a coarse clock, they differ by many samples.
    fn new(a: &[f64], b: &[f64], level: f64) -> Self {
        let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
        all.sort_unstable_by(f64::total_cmp);
        let below = ((all.len() as f64 * level).floor() as usize).min(all.len() - 1);
        let threshold = all[below];
        let target = all.len() as f64 * (1.0 - level);
        let size = |inclusive| Self { threshold, inclusive }.count(&all) as f64;
        Self { threshold, inclusive: (size(true) - target).abs() < (size(false) - target).abs() }
    }

    fn count(&self, side: &[f64]) -> usize {
        side.iter().filter(|sample| **sample > self.threshold || self.inclusive && **sample == self.threshold).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_needs_samples_that_can_be_beyond_it() {
        assert_eq!(
            [0, 12, 13, 35, 36, 1000].map(tail_level),
            [None, None, Some(0.75), Some(0.75), Some(0.9), Some(0.9)]
        );
        for (samples, level) in [(13, 0.75_f64), (36, 0.9)] {
            assert!(level.powi(samples) < 0.025 && level.powi(samples - 1) > 0.025);
        }
    }

    /// Counted by hand and tested by SciPy: `fisher_exact([[0, 20], [5, 15]])`.
    #[test]
    fn the_tail_beyond_the_pooled_quantile_is_counted() {
        let a: Vec<f64> = (0..20).map(|n| 100.0 + f64::from(n)).collect();
        let mut b = a.clone();
        b[15..].iter_mut().for_each(|sample| *sample *= 5.0);
        let p_value = pooled_quantile_p(&a, &b, 0.875);
        assert!((p_value - 0.047_124_047_124_047_13).abs() < 1e-9, "{p_value}");
        let mirrored = |side: &[f64]| side.iter().map(|sample| -sample).collect::<Vec<_>>();
        assert_eq!(pooled_quantile_p(&mirrored(&a), &mirrored(&b), 0.125), p_value);
        assert_eq!(pooled_quantile_p(&a, &b, 0.125), 1.0);
    }

    #[test]
    fn with_ties_the_tail_is_the_one_whose_size_is_closer_to_the_level() {
        let side = |slow: usize| [vec![1.0; 20 - slow], vec![2.0; slow]].concat();
        // A quarter of all is slow: the samples at the threshold belong to the tail.
        assert!(pooled_quantile_p(&side(1), &side(9), 0.75) < 0.01);
        // Two in forty are slow, and the quantile is fast.
        assert_eq!(pooled_quantile_p(&side(1), &side(1), 0.9), 1.0);
        assert_eq!(pooled_quantile_p(&side(0), &side(0), 0.9), 1.0);
    }

    #[test]
    fn a_tail_without_sides_or_a_level_does_not_differ() {
        assert_eq!(pooled_quantile_p(&[], &[1.0], 0.9), 1.0);
        for q in [0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(pooled_quantile_p(&[1.0; 9], &[2.0; 9], q), 1.0);
        }
    }
}
