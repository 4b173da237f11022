//! The ratio of two sides whose samples form pairs: the Hodges–Lehmann estimate and its interval.

use crate::hodges_lehmann::ShiftScale;
use crate::selection::{PairValues, WalshAverages};
use crate::signed_rank::{count_outside, signed_rank_p};
use crate::{CONFIDENCE, Interval, Ratio, Samples, widening};

/// The factor by which two sides differ whose samples form pairs, taken one after the other in random order.
///
/// The estimate is the median of the means of all pairs of ratios bᵢ/aᵢ, on logarithms (Hodges, Lehmann 1963), and the
/// interval inverts the signed-rank test (Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, section 3.3).
/// What both samples of a pair have in common, a drift or a disturbance, cancels out. Where a sample is zero or
/// negative there are no logarithms: then it is the difference of values relative to the median of `a`.
pub struct PairedShift {
    /// The differences within pairs, ascending.
    differences: Vec<f64>,
    scale: ShiftScale,
}

impl PairedShift {
    /// The sides in the order of their pairs. `None` if their numbers differ.
    pub fn new(a: &Samples, b: &Samples) -> Option<Self> {
        if a.count() != b.count() {
            return None;
        }
        let scale = ShiftScale::new(a, b);
        let mut differences = differences(a, b, scale);
        differences.sort_unstable_by(f64::total_cmp);
        Some(Self { differences, scale })
    }

    /// The p-value: see [`signed_rank_p`].
    pub fn p_value(&self) -> f64 {
        signed_rank_p(&self.differences)
    }

    /// The estimate and its interval, with the p-value of [`Self::p_value`] as an argument since the confidence may
    /// depend on it. Few pairs have an interval at less than that, but at least at [`CONFIDENCE`]: between the smallest
    /// and the largest ratio.
    pub fn ratio(&self, p: f64, confidence: f64) -> Ratio {
        let averages = WalshAverages(&self.differences);
        let outside = |confidence| count_outside(self.differences.len(), confidence);
        let widest = || outside(CONFIDENCE).map(|_| (0, 1.0 - 2.0 * 0.5_f64.powi(self.differences.len() as i32)));
        let interval = outside(confidence).or_else(widest).map(|(beyond, reached)| {
            let (low, high) = (averages.nth(beyond), averages.nth(averages.count() - 1 - beyond));
            Interval { low: self.scale.as_ratio(low), high: self.scale.as_ratio(high), confidence: reached }
        });
        Ratio { estimate: self.scale.as_ratio(averages.median()), interval, p_value: p }
    }
}

/// The factor by which the dependence of pairs on those before them widens the interval of their ratio; 1 for fewer
/// than 6 pairs
pub fn paired_widening(a: &Samples, b: &Samples) -> f64 {
    let differences = differences(a, b, ShiftScale::new(a, b));
    // A difference may be too large for a sample.
    Samples::new(&differences).ok().map_or(1.0, |all| widening(&all))
}

/// The differences within pairs, in their order.
fn differences(a: &Samples, b: &Samples, scale: ShiftScale) -> Vec<f64> {
    let difference = |(a, b): (&f64, &f64)| match scale {
        ShiftScale::Logarithms => b.ln() - a.ln(),
        ShiftScale::Values { .. } | ShiftScale::Zero { .. } => b - a,
    };
    a.in_order().iter().zip(b.in_order()).map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(a: &[f64], b: &[f64]) -> Option<Ratio> {
        let shift = PairedShift::new(&Samples::new(a).unwrap(), &Samples::new(b).unwrap())?;
        Some(shift.ratio(shift.p_value(), 0.95))
    }

    #[test]
    fn a_drift_that_both_sides_have_cancels_out() {
        let drift: Vec<f64> = (0..8).map(|n| 100.0 * 1.2_f64.powi(n)).collect();
        let faster: Vec<f64> = drift.iter().enumerate().map(|(n, x)| x * (1.1 + 0.001 * n as f64)).collect();
        let paired = ratio(&drift, &faster).unwrap();
        let interval = paired.interval.unwrap();
        assert!(paired.p_value < 0.01 && interval.low > 1.09 && interval.high < 1.12, "{paired:?}");
        let sides = [drift, faster].map(|side| Samples::new(&side).unwrap());
        assert!(crate::ratio(&sides[0], &sides[1], 0.95).p_value > 0.5);
    }

    #[test]
    fn exchanging_the_sides_gives_the_reciprocal() {
        let (a, b) = ([5.0, 6.0, 7.0, 8.0, 9.0, 11.0], [6.5, 7.5, 6.5, 9.5, 12.0, 13.0]);
        let (forward, backward) = (ratio(&a, &b).unwrap(), ratio(&b, &a).unwrap());
        let (one, other) = (forward.interval.unwrap(), backward.interval.unwrap());
        assert!((forward.estimate * backward.estimate - 1.0).abs() < 1e-12);
        assert!((one.low * other.high - 1.0).abs() < 1e-12 && (forward.p_value - backward.p_value).abs() < 1e-12);
    }

    #[test]
    fn pairs_without_a_logarithm_have_a_difference_relative_to_the_median() {
        let shifted = ratio(&[-1.0, 0.0, 4.0, 10.0, 10.0, 11.0], &[0.0, 1.0, 5.0, 11.0, 11.0, 12.0]).unwrap();
        assert!((shifted.estimate - (1.0 + 1.0 / 7.0)).abs() < 1e-12, "{shifted:?}");
        assert_eq!(ratio(&[1.0], &[1.0, 2.0]), None);
        let (zeros, above) = ([0.0; 6], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        for (a, b, factor) in [(above, zeros, 0.0), (zeros, above, f64::INFINITY)] {
            let ratio = ratio(&a, &b).unwrap();
            assert_eq!((ratio.estimate, ratio.interval.map(|it| [it.low, it.high])), (factor, Some([factor; 2])));
        }
    }

    #[test]
    fn fewer_than_six_pairs_have_an_estimate_and_no_interval() {
        let few = ratio(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]).unwrap();
        assert!(few.interval.is_none() && (few.estimate - 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_both_sides_have_in_common_is_no_dependence_of_pairs() {
        let drift: Vec<f64> = (0..12).map(|n| 100.0 * 1.2_f64.powi(n)).collect();
        let times = |factor: &dyn Fn(usize) -> f64| {
            let judged: Vec<f64> = drift.iter().enumerate().map(|(n, x)| x * factor(n)).collect();
            paired_widening(&Samples::new(&drift).unwrap(), &Samples::new(&judged).unwrap())
        };
        assert_eq!(times(&|n| 1.1 + 0.01 * (n % 2) as f64), 1.0);
        assert!(times(&|n| 1.1 + 0.01 * n as f64) > 2.0);
        let [zeros, ones] = [[0.0; 6], [1.0; 6]].map(|side| Samples::new(&side).unwrap());
        assert_eq!(paired_widening(&zeros, &ones), 1.0, "differences that do not vary");
    }

    #[test]
    fn few_pairs_have_the_widest_interval_that_they_allow() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.1, 2.3, 3.4, 4.5, 5.4, 6.9]);
        let shift = PairedShift::new(&Samples::new(&a).unwrap(), &Samples::new(&b).unwrap()).unwrap();
        let interval = shift.ratio(0.03, 0.999).interval.unwrap();
        assert_eq!(interval.confidence, 1.0 - 2.0 / 64.0);
        assert!((interval.low - 5.4 / 5.0).abs() < 1e-12 && (interval.high - 1.15).abs() < 1e-12, "{interval:?}");
    }
}
