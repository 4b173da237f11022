//! The ratio of the medians, or of other quantiles, of two sides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Interval, Samples, quantile_interval};

/// The ratio of the same quantile of two sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantileRatio {
    /// The estimated ratio of the other side's quantile to this one's: 1.05 is five percent more.
    pub estimate: f64,
    /// The confidence interval of the ratio; `None` if a side has too few samples for the confidence.
    pub interval: Option<Interval>,
}

/// The ratio of the median of `b` to that of `a`: see [`quantile_ratio`].
///
/// It describes and decides nothing: with two equal modes the estimate jumps across the gap, and of samples that are
/// all 5 % higher, its interval excludes 1 half as often as the rank-sum test finds it (`docs/statistics.md`).
pub fn median_ratio(a: &Samples, b: &Samples, confidence: f64) -> Option<QuantileRatio> {
    quantile_ratio(a, b, 0.5, confidence)
}

/// The ratio of the quantile `q` of `b` to that of `a`.
///
/// The quantiles are of type 7, as [`Samples::quantile`]. Each side's interval is between two order statistics
/// ([`quantile_interval`]); on logarithms, the two are combined by MOVER, the method of variance estimates recovery
/// (Zou, Donner 2008), which needs neither side's interval to be symmetric. The confidence is the smaller one that the
/// two reach.
/// At 95 %, it excludes 1 for at most 4 % of equal sides, also with modes (`docs/statistics.md`).
///
/// `None` if a quantile is not above zero, or the ratio overflows. No interval if a side has too few samples for its
/// order statistics, or the lower one is not above zero.
pub fn quantile_ratio(a: &Samples, b: &Samples, q: f64, confidence: f64) -> Option<QuantileRatio> {
    let quantiles = [a, b].map(|side| side.quantile(q));
    if quantiles.iter().any(|quantile| *quantile <= 0.0) {
        return None;
    }
    let [from, to] = quantiles.map(f64::ln);
    let estimate = Some((to - from).exp()).filter(|estimate| estimate.is_normal())?;
    let interval =
        LogDistances::new(a, q, confidence).zip(LogDistances::new(b, q, confidence)).map(|(a, b)| Interval {
            low: (to - from - b.below.hypot(a.above)).exp(),
            high: (to - from + b.above.hypot(a.below)).exp(),
            confidence: a.confidence.min(b.confidence),
        });
    let finite = |interval: &Interval| interval.low.is_finite() && interval.high.is_finite();
    Some(QuantileRatio { estimate, interval: interval.filter(finite) })
}

/// The distances of the ends of a quantile's interval from the quantile, on logarithms.
struct LogDistances {
    below: f64,
    above: f64,
    confidence: f64,
}

impl LogDistances {
    fn new(side: &Samples, q: f64, confidence: f64) -> Option<Self> {
        let interval = quantile_interval(side, q, confidence).filter(|interval| interval.low > 0.0)?;
        let [low, quantile, high] = [interval.low, side.quantile(q), interval.high].map(f64::ln);
        // A quantile of few samples may lie outside of its interval.
        Some(Self {
            below: (quantile - low).max(0.0),
            above: (high - quantile).max(0.0),
            confidence: interval.confidence,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples::new(values).unwrap()
    }

    #[test]
    fn two_intervals_are_combined_by_their_distances() {
        // Six samples a side have the smallest and the largest as their interval.
        let (a, b) = (samples(&[8.0, 9.0, 10.0, 10.0, 11.0, 12.0]), samples(&[15.0, 16.0, 20.0, 20.0, 22.0, 30.0]));
        let ratio = median_ratio(&a, &b, 0.95).unwrap();
        let interval = ratio.interval.unwrap();
        assert!((ratio.estimate - 2.0).abs() < 1e-12);
        let half = |b: f64, a: f64| (b.ln().powi(2) + a.ln().powi(2)).sqrt().exp();
        assert!((interval.low - 2.0 / half(20.0 / 15.0, 1.2)).abs() < 1e-12);
        assert!((interval.high - 2.0 * half(1.5, 10.0 / 8.0)).abs() < 1e-12);
        assert_eq!(interval.confidence, 0.96875);
    }

    #[test]
    fn a_quantile_needs_samples_beyond_it() {
        let count = |n: u32| samples(&(1..=n).map(f64::from).collect::<Vec<_>>());
        let has_interval = |q, n| quantile_ratio(&count(n), &count(40), q, 0.95).unwrap().interval.is_some();
        assert!(!has_interval(0.5, 5) && has_interval(0.5, 6));
        assert!(!has_interval(0.75, 12) && has_interval(0.75, 13));
        assert!(!has_interval(0.9, 35) && has_interval(0.9, 36));
        assert!(!has_interval(0.1, 35) && has_interval(0.1, 36));
    }

    #[test]
    fn a_quantile_that_is_not_above_zero_has_no_ratio() {
        let (zero, one) = (samples(&[0.0, 0.0, 0.0, 1.0]), samples(&[1.0; 6]));
        assert_eq!((median_ratio(&zero, &one, 0.95), median_ratio(&one, &zero, 0.95)), (None, None));
        // The lower end of its interval is not above zero.
        let low = samples(&[-1.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(median_ratio(&one, &low, 0.95), Some(QuantileRatio { estimate: 1.5, interval: None }));
    }

    #[test]
    fn samples_that_do_not_vary_have_an_exact_ratio() {
        let interval = median_ratio(&samples(&[2.0; 6]), &samples(&[3.0; 6]), 0.95).unwrap().interval.unwrap();
        assert!((interval.low - 1.5).abs() < 1e-12 && (interval.high - 1.5).abs() < 1e-12);
    }
}
