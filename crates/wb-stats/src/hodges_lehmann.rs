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

/// The ratio of `b` to `a`: see [`HodgesLehmann`]; `None` if they have no ratio.
pub fn ratio(a: &Samples, b: &Samples, confidence: f64) -> Option<Ratio> {
    let sides = HodgesLehmann::new(a, b)?;
    Some(sides.ratio(sides.p_value(), confidence))
}

/// The Hodges–Lehmann estimate of the ratio of two sides.
///
/// The estimate is the median of the ratios bⱼ/aᵢ of all pairs (Hodges, Lehmann 1963, of logarithms), and the interval
/// inverts the rank-sum test (Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, section 4.3), which takes both
/// sides to have the same spread. Where they differ in spread and number, it covers too little; so the interval has what
/// the test of Brunner and Munzel does not reject, too, which hardly widens it for equal spreads. For sides
/// that differ by a factor it estimates that factor; for log-symmetric ones the ratio of their medians. Where a sample
/// is zero or negative there are no logarithms: then it is the shift of the values relative to the median of `a`.
pub struct HodgesLehmann<'a> {
    a: &'a Samples,
    b: &'a Samples,
    scale: ShiftScale,
}

/// The scale of the shift between two sides.
#[derive(Clone, Copy)]
pub(crate) enum ShiftScale {
    Logarithms,
    /// Values relative to this unit.
    Values(f64),
}

impl ShiftScale {
    /// `None` if there are no logarithms and the median of `a` is 0, unless all samples are.
    pub(crate) fn of(a: &Samples, b: &Samples) -> Option<Self> {
        if a.min() > 0.0 && b.min() > 0.0 {
            return Some(Self::Logarithms);
        }
        if [a, b].iter().all(|side| side.min() == 0.0 && side.max() == 0.0) {
            // Their shift is zero in any unit.
            return Some(Self::Values(1.0));
        }
        Some(Self::Values(Some(a.median().abs()).filter(|unit| *unit > 0.0)?))
    }

    pub(crate) fn as_ratio(self, shift: f64) -> f64 {
        match self {
            Self::Logarithms => shift.exp(),
            Self::Values(unit) => 1.0 + shift / unit,
        }
    }
}

impl<'a> HodgesLehmann<'a> {
    /// `None` if there are no logarithms and the median of `a` is 0, unless all samples are.
    pub fn new(a: &'a Samples, b: &'a Samples) -> Option<Self> {
        Some(Self { a, b, scale: ShiftScale::of(a, b)? })
    }

    /// The p-value: the larger one of [`rank_sum_p`] and of the test of Brunner and Munzel.
    pub fn p_value(&self) -> f64 {
        let studentized = RelativeEffect::of(self.a.sorted(), self.b.sorted(), 0.0).p_value();
        rank_sum_p(self.a.in_order(), self.b.in_order()).max(studentized)
    }

    /// The estimate and its interval, with the p-value of [`Self::p_value`] as an argument since the confidence may
    /// depend on it.
    pub fn ratio(&self, p: f64, confidence: f64) -> Ratio {
        let [from, to] = [self.a, self.b].map(|side| self.scaled(side));
        let shifts = Differences { from: &from, to: &to };
        let interval = count_outside(from.len(), to.len(), confidence).map(|(beyond, reached)| {
            let by_ranks = [shifts.nth(beyond), shifts.nth(shifts.count() - 1 - beyond)];
            let [low, high] = include_not_rejected(&from, &to, by_ranks, 1.0 - reached);
            Interval { low: self.scale.as_ratio(low), high: self.scale.as_ratio(high), confidence: reached }
        });
        Ratio { estimate: self.scale.as_ratio(shifts.median()), interval, p_value: p }
    }

    fn scaled(&self, side: &Samples) -> Vec<f64> {
        match self.scale {
            ShiftScale::Logarithms => {
                let mut logs: Vec<f64> = side.sorted().iter().map(|x| x.ln()).collect();
                // No library guarantees that the logarithm of a larger number is not smaller by rounding.
                logs.sort_unstable_by(f64::total_cmp);
                logs
            }
            ShiftScale::Values(_) => side.sorted().to_vec(),
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
    fn a_factor_between_the_sides_is_estimated() {
        let a = samples(&[1.0, 2.0, 4.0, 3.0, 10.0, 7.0]);
        let b = samples(&a.in_order().iter().map(|x| x * 1.5).collect::<Vec<_>>());
        let ratio = ratio(&a, &b, 0.95).unwrap();
        assert!((ratio.estimate - 1.5).abs() < 1e-9);
        assert!(ratio.interval.unwrap().contains(1.5));
    }

    #[test]
    fn exchanging_the_sides_gives_the_reciprocal() {
        let (a, b) = (samples(&[5.0, 6.0, 7.0, 8.0, 9.0, 11.0]), samples(&[6.5, 7.5, 8.5, 9.5, 12.0, 13.0]));
        let (forward, backward) = (ratio(&a, &b, 0.95).unwrap(), ratio(&b, &a, 0.95).unwrap());
        let (one, other) = (forward.interval.unwrap(), backward.interval.unwrap());
        assert!((forward.estimate * backward.estimate - 1.0).abs() < 1e-12);
        assert!((one.low * other.high - 1.0).abs() < 1e-12 && (one.high * other.low - 1.0).abs() < 1e-12);
        assert!((forward.p_value - backward.p_value).abs() < 1e-12);
    }

    #[test]
    fn samples_without_a_logarithm_have_a_shift_relative_to_the_median() {
        let (a, b) = (samples(&[-1.0, 0.0, 4.0, 10.0, 10.0, 11.0]), samples(&[0.0, 1.0, 5.0, 11.0, 11.0, 12.0]));
        let ratio = ratio(&a, &b, 0.95).unwrap();
        assert!((ratio.estimate - (1.0 + 1.0 / 7.0)).abs() < 1e-12, "{ratio:?}");
        let zeros = samples(&[0.0; 6]);
        assert_eq!(super::ratio(&zeros, &b, 0.95), None);
        let equal = super::ratio(&zeros, &zeros, 0.95).unwrap();
        assert_eq!(
            (equal.estimate, equal.p_value, equal.interval.map(|it| [it.low, it.high])),
            (1.0, 1.0, Some([1.0; 2]))
        );
    }

    #[test]
    fn too_few_samples_have_an_estimate_and_no_interval() {
        let ratio = ratio(&samples(&[1.0, 2.0, 3.0]), &samples(&[2.0, 4.0, 6.0]), 0.95).unwrap();
        assert!(ratio.interval.is_none() && (ratio.estimate - 2.0).abs() < 1e-12);
    }
}
