//! By how much one side is larger than the other: the Hodges–Lehmann estimate and its interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Interval, Samples, rank_sum::count_outside, rank_sum_p};

/// How one side stands to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The other side over this one: 1.05 is five percent more.
    pub estimate: f64,
    /// Where it lies; none where these sizes allow no interval at the confidence.
    pub interval: Option<Interval>,
    /// How likely sides that differ in nothing are so far apart: Wilcoxon's rank sum, both directions.
    pub p_value: f64,
}

/// How `b` stands to `a`: see [`TwoSides`]; none where these have no ratio.
pub fn ratio(a: &Samples, b: &Samples, confidence: f64) -> Option<Ratio> {
    let sides = HodgesLehmann::new(a, b)?;
    Some(sides.ratio(sides.p_value(), confidence))
}

/// Two sides of which one is so many times the other.
///
/// The estimate is the median of the ratios bⱼ/aᵢ of all pairs (Hodges, Lehmann 1963, of logarithms), and the interval
/// inverts the rank-sum test (Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, section 4.3). For sides
/// that differ by a factor it estimates that factor; for log-symmetric ones the ratio of their medians. Where a sample
/// is zero or negative there are no logarithms: then it is the shift of the values in relation to the median of `a`.
pub struct HodgesLehmann<'a> {
    a: &'a Samples,
    b: &'a Samples,
    scale: ShiftScale,
}

/// On what scale one side is shifted against the other.
#[derive(Clone, Copy)]
enum ShiftScale {
    Logarithms,
    /// In relation to this.
    Values(f64),
}

impl<'a> HodgesLehmann<'a> {
    /// None where there are no logarithms and the median of `a` is 0.
    pub fn new(a: &'a Samples, b: &'a Samples) -> Option<Self> {
        let scale = if a.min() > 0.0 && b.min() > 0.0 {
            ShiftScale::Logarithms
        } else {
            ShiftScale::Values(Some(a.median().abs()).filter(|unit| *unit > 0.0)?)
        };
        Some(Self { a, b, scale })
    }

    /// How likely sides that differ in nothing are so far apart: see [`rank_sum_p`].
    pub fn p_value(&self) -> f64 {
        rank_sum_p(self.a.in_order(), self.b.in_order())
    }

    /// The estimate and its interval, with `p` as [`Self::p`] gave it: the confidence may depend on it.
    pub fn ratio(&self, p: f64, confidence: f64) -> Ratio {
        let [from, to] = [self.a, self.b].map(|side| self.scaled(side));
        let mut shifts: Vec<f64> = to.iter().flat_map(|to| from.iter().map(move |from| to - from)).collect();
        let interval = count_outside(from.len(), to.len(), confidence).map(|(beyond, reached)| {
            let low = nth(&mut shifts, beyond);
            let last = shifts.len() - 1;
            let high = nth(&mut shifts, last - beyond);
            Interval { low: self.as_ratio(low), high: self.as_ratio(high), confidence: reached }
        });
        let middle = shifts.len() / 2;
        let upper = nth(&mut shifts, middle);
        let lower = if shifts.len().is_multiple_of(2) { nth(&mut shifts, middle - 1) } else { upper };
        Ratio { estimate: self.as_ratio((lower + upper) / 2.0), interval, p_value: p }
    }

    fn scaled(&self, side: &Samples) -> Vec<f64> {
        match self.scale {
            ShiftScale::Logarithms => side.sorted().iter().map(|x| x.ln()).collect(),
            ShiftScale::Values(_) => side.sorted().to_vec(),
        }
    }

    fn as_ratio(&self, shift: f64) -> f64 {
        match self.scale {
            ShiftScale::Logarithms => shift.exp(),
            ShiftScale::Values(unit) => 1.0 + shift / unit,
        }
    }
}

fn nth(values: &mut [f64], position: usize) -> f64 {
    *values.select_nth_unstable_by(position, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples::new(values).unwrap()
    }

    #[test]
    fn a_factor_between_the_sides_is_found_whatever_they_are() {
        let a = samples(&[1.0, 2.0, 4.0, 3.0, 10.0, 7.0]);
        let b = samples(&a.in_order().iter().map(|x| x * 1.5).collect::<Vec<_>>());
        let ratio = ratio(&a, &b, 0.95).unwrap();
        assert!((ratio.estimate - 1.5).abs() < 1e-9);
        assert!(ratio.interval.unwrap().contains(1.5));
    }

    #[test]
    fn exchanging_the_sides_gives_the_reciprocal() {
        let (a, b) = (samples(&[5.0, 6.0, 7.0, 8.0, 9.0, 11.0]), samples(&[6.5, 7.5, 8.5, 9.5, 12.0, 13.0]));
        let (there, back) = (ratio(&a, &b, 0.95).unwrap(), ratio(&b, &a, 0.95).unwrap());
        let (one, other) = (there.interval.unwrap(), back.interval.unwrap());
        assert!((there.estimate * back.estimate - 1.0).abs() < 1e-12);
        assert!((one.low * other.high - 1.0).abs() < 1e-12 && (one.high * other.low - 1.0).abs() < 1e-12);
        assert!((there.p_value - back.p_value).abs() < 1e-12);
    }

    #[test]
    fn what_has_no_logarithm_is_a_shift_of_the_median() {
        let (a, b) = (samples(&[-1.0, 0.0, 4.0, 10.0, 10.0, 11.0]), samples(&[0.0, 1.0, 5.0, 11.0, 11.0, 12.0]));
        let ratio = ratio(&a, &b, 0.95).unwrap();
        assert!((ratio.estimate - (1.0 + 1.0 / 7.0)).abs() < 1e-12, "{ratio:?}");
        assert_eq!(super::ratio(&samples(&[0.0; 6]), &b, 0.95), None);
    }

    #[test]
    fn too_few_have_an_estimate_and_no_interval() {
        let ratio = ratio(&samples(&[1.0, 2.0, 3.0]), &samples(&[2.0, 4.0, 6.0]), 0.95).unwrap();
        assert!(ratio.interval.is_none() && (ratio.estimate - 2.0).abs() < 1e-12);
    }
}
