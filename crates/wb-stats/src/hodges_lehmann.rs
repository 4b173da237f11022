//! The ratio of two sides: the Hodges–Lehmann estimate and its interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::brunner_munzel::{RelativeEffect, include_not_rejected};
use crate::rank_sum::count_outside;
use crate::selection::{Differences, PairValues};
use crate::{Interval, Samples, rank_sum_p};

/// The ratio of one side to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The estimated ratio of the other side to this one: 1.05 is five percent more.
    pub estimate: f64,
    /// The confidence interval of the ratio; `None` if there are too few samples for the confidence.
    pub interval: Option<Interval>,
    /// The two-sided p-value: the probability that equal sides are at least this far apart.
    pub p_value: f64,
}

/// The ratio of `b` to `a`: see [`HodgesLehmann`].
pub fn ratio(a: &Samples, b: &Samples, confidence: f64) -> Ratio {
    let sides = HodgesLehmann::new(a, b);
    sides.ratio(sides.p_value(), confidence)
}

/// The shift of the values of `b` from those of `a`, whatever their signs: the median of the differences of all pairs,
/// with the interval of [`HodgesLehmann`].
pub fn difference(a: &Samples, b: &Samples, confidence: f64) -> Shift {
    shift_between(a.sorted(), b.sorted(), confidence)
}

/// The shift between sorted values.
fn shift_between(from: &[f64], to: &[f64], confidence: f64) -> Shift {
    let shifts = Differences { from, to };
    let interval = count_outside(from.len(), to.len(), confidence).map(|(beyond, reached)| {
        let by_ranks = [shifts.nth(beyond), shifts.nth(shifts.count() - 1 - beyond)];
        let [low, high] = include_not_rejected(from, to, by_ranks, 1.0 - reached);
        Interval { low, high, confidence: reached }
    });
    Shift { estimate: shifts.median(), interval }
}

/// The Hodges–Lehmann estimate of the ratio of two sides.
///
/// The estimate is the median of the ratios bⱼ/aᵢ of all pairs (Hodges, Lehmann 1963, of logarithms), and the interval
/// inverts the rank-sum test (Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, section 4.3), which takes
/// both sides to have the same spread. Where they differ in spread and number, it covers too little; so the interval
/// has what the test of Brunner and Munzel does not reject, too, which hardly widens it for equal spreads. For sides
/// that differ by a factor it estimates that factor; for log-symmetric ones the ratio of their medians. Where a sample
/// is zero or negative there are no logarithms: then it is the shift of the values relative to the median of `a`, which
/// is infinite where that median is zero.
pub struct HodgesLehmann<'a> {
    a: &'a Samples,
    b: &'a Samples,
    scale: ShiftScale,
}

/// The shift between two sides on its scale: of the logarithms, or of the values where a sample is not above zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    pub estimate: f64,
    /// Its confidence interval; `None` if there are too few samples for the confidence.
    pub interval: Option<Interval>,
}

/// The scale of the shift between two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ShiftScale {
    Logarithms,
    /// Values relative to the unit, the magnitude of the median of the first side.
    Values {
        unit: f64,
        may_be_negative: bool,
    },
    /// Values, with this one ratio between all samples, since one side is zero and the other side above or below it.
    Zero {
        ratio: f64,
    },
}

impl ShiftScale {
    pub(crate) fn new(a: &Samples, b: &Samples) -> Self {
        let is_zero = |side: &Samples| side.min() == 0.0 && side.max() == 0.0;
        let has_no_zero = |side: &Samples| side.min() > 0.0 || side.max() < 0.0;
        match a.min().min(b.min()) {
            min if min > 0.0 => Self::Logarithms,
            // What is below zero and becomes zero rises by its whole magnitude.
            _ if is_zero(b) && has_no_zero(a) => Self::Zero { ratio: if a.max() < 0.0 { 2.0 } else { 0.0 } },
            _ if is_zero(a) && has_no_zero(b) => Self::Zero { ratio: f64::INFINITY.copysign(b.min()) },
            min => Self::Values { unit: a.median().abs(), may_be_negative: min < 0.0 },
        }
    }

    pub(crate) fn as_ratio(self, shift: f64) -> f64 {
        let ratio = match self {
            Self::Logarithms => return shift.exp(),
            Self::Zero { ratio } => return ratio,
            Self::Values { .. } if shift == 0.0 => 1.0,
            Self::Values { unit, .. } => 1.0 + shift / unit,
        };
        // The end of an interval of shifts may be further from the median than zero is, which no value is beyond.
        match self {
            Self::Values { may_be_negative: false, .. } => ratio.max(0.0),
            _ => ratio,
        }
    }
}

impl<'a> HodgesLehmann<'a> {
    /// The estimator of the ratio of `b` to `a`.
    pub fn new(a: &'a Samples, b: &'a Samples) -> Self {
        Self { a, b, scale: ShiftScale::new(a, b) }
    }

    /// The p-value: the larger one of [`rank_sum_p`] and of the test of Brunner and Munzel.
    pub fn p_value(&self) -> f64 {
        let studentized = RelativeEffect::new(self.a.sorted(), self.b.sorted(), 0.0).p_value();
        rank_sum_p(self.a.in_order(), self.b.in_order()).max(studentized)
    }

    /// Whether the shift is one of logarithms: all samples are above zero.
    pub fn is_logarithmic(&self) -> bool {
        self.scale == ShiftScale::Logarithms
    }

    /// The ratio that a shift amounts to.
    pub fn as_ratio(&self, shift: f64) -> f64 {
        self.scale.as_ratio(shift)
    }

    /// The shift and its interval.
    pub fn shift(&self, confidence: f64) -> Shift {
        let [from, to] = [self.a, self.b].map(|side| self.scaled(side));
        shift_between(&from, &to, confidence)
    }

    /// The estimate and its interval, with the p-value of [`Self::p_value`] as an argument since the confidence may
    /// depend on it.
    pub fn ratio(&self, p: f64, confidence: f64) -> Ratio {
        let Shift { estimate, interval } = self.shift(confidence);
        let as_ratios = |interval: Interval| Interval {
            low: self.as_ratio(interval.low),
            high: self.as_ratio(interval.high),
            ..interval
        };
        Ratio { estimate: self.as_ratio(estimate), interval: interval.map(as_ratios), p_value: p }
    }

    fn scaled(&self, side: &Samples) -> Vec<f64> {
        match self.scale {
            ShiftScale::Logarithms => {
                let mut logs: Vec<f64> = side.sorted().iter().map(|x| x.ln()).collect();
                // No library guarantees that the logarithm of a larger number is not smaller by rounding.
                logs.sort_unstable_by(f64::total_cmp);
                logs
            }
            ShiftScale::Values { .. } | ShiftScale::Zero { .. } => side.sorted().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples::new(values).unwrap()
    }

    #[test]
    fn a_difference_of_values_of_any_sign_is_estimated() {
        let a = samples(&[-1.0, 2.0, 0.0, 3.0, 10.0, 7.0]);
        let b = samples(&a.in_order().iter().map(|x| x + 1.5).collect::<Vec<_>>());
        let shift = difference(&a, &b, 0.95);
        assert_eq!(shift.estimate, 1.5);
        assert!(shift.interval.is_some_and(|interval| interval.low < 1.5 && interval.high > 1.5), "{shift:?}");
        assert_eq!(difference(&a, &samples(&[1.0]), 0.95).interval, None);
    }

    #[test]
    fn a_factor_between_the_sides_is_estimated() {
        let a = samples(&[1.0, 2.0, 4.0, 3.0, 10.0, 7.0]);
        let b = samples(&a.in_order().iter().map(|x| x * 1.5).collect::<Vec<_>>());
        let ratio = ratio(&a, &b, 0.95);
        assert!((ratio.estimate - 1.5).abs() < 1e-9);
        assert!(ratio.interval.unwrap().contains(1.5));
    }

    #[test]
    fn exchanging_the_sides_gives_the_reciprocal() {
        let (a, b) = (samples(&[5.0, 6.0, 7.0, 8.0, 9.0, 11.0]), samples(&[6.5, 7.5, 8.5, 9.5, 12.0, 13.0]));
        let (forward, backward) = (ratio(&a, &b, 0.95), ratio(&b, &a, 0.95));
        let (one, other) = (forward.interval.unwrap(), backward.interval.unwrap());
        assert!((forward.estimate * backward.estimate - 1.0).abs() < 1e-12);
        assert!((one.low * other.high - 1.0).abs() < 1e-12 && (one.high * other.low - 1.0).abs() < 1e-12);
        assert!((forward.p_value - backward.p_value).abs() < 1e-12);
    }

    #[test]
    fn samples_without_a_logarithm_have_a_shift_relative_to_the_median() {
        let (a, b) = (samples(&[-1.0, 0.0, 4.0, 10.0, 10.0, 11.0]), samples(&[0.0, 1.0, 5.0, 11.0, 11.0, 12.0]));
        let ratio = ratio(&a, &b, 0.95);
        assert!((ratio.estimate - (1.0 + 1.0 / 7.0)).abs() < 1e-12, "{ratio:?}");
    }

    #[test]
    fn a_side_of_zeros_differs_from_another_one_by_everything() {
        let (zeros, above) = (samples(&[0.0; 6]), samples(&[990.0, 1001.0, 1010.0, 1020.0, 980.0, 1004.0]));
        for (a, b, factor) in [(&above, &zeros, 0.0), (&zeros, &above, f64::INFINITY), (&zeros, &zeros, 1.0)] {
            let ratio = super::ratio(a, b, 0.95);
            assert_eq!((ratio.estimate, ratio.interval.map(|it| [it.low, it.high])), (factor, Some([factor; 2])));
            assert_eq!(ratio.p_value < 0.01, factor != 1.0, "{ratio:?}");
        }
        let below = samples(&[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]);
        assert_eq!(super::ratio(&zeros, &below, 0.95).estimate, f64::NEG_INFINITY);
        assert_eq!(super::ratio(&below, &zeros, 0.95).estimate, 2.0, "it rises, although nothing is left");
    }

    // The interval of a ratio from differences could end below zero.
    #[test]
    fn what_cannot_be_negative_decreases_by_all_of_it_at_most() {
        let (from, to) = (samples(&[8.0, 9.0, 10.0, 11.0, 12.0, 13.0]), samples(&[0.0, 0.0, 0.1, 0.0, 0.2, 0.0]));
        let low = |a: &Samples, b: &Samples| super::ratio(a, b, 0.95).interval.unwrap().low;
        assert_eq!(low(&from, &to), 0.0);
        let negative = samples(&[0.0, 0.0, 0.1, 0.0, 0.2, -1e-9]);
        assert!(low(&from, &negative) < 0.0);
    }

    #[test]
    fn too_few_samples_have_an_estimate_and_no_interval() {
        let ratio = ratio(&samples(&[1.0, 2.0, 3.0]), &samples(&[2.0, 4.0, 6.0]), 0.95);
        assert!(ratio.interval.is_none() && (ratio.estimate - 2.0).abs() < 1e-12);
    }
}
