//! The ratio of the tails of two sides whose samples form pairs.

use crate::signed_rank::sign_flip_p;
use crate::tail::Threshold;
use crate::{Interval, Ratio, Samples};

/// Farther away than this factor from the estimate, no end of an interval is searched.
const MAX_FACTOR: f64 = 1e6;

/// The relative precision of the ends of intervals, on logarithms.
const PRECISION: f64 = 1e-4;

/// The two-sided p-value of whether two sides, whose samples form pairs, differ in the tail beyond the quantile `q` of
/// both together: above it for `q` of at least 0.5, below it otherwise.
///
/// As [`tail_p`](crate::tail_p()), samples have their ranks within the tail, and all others zero. The distribution is
/// that of all ways to exchange the samples within pairs, so that it is exact whatever all pairs have in common: if the
/// samples of late pairs are the tail on both sides, the sides are equal. 1 if the numbers of samples differ, or if `q`
/// is not between 0 and 1.
pub fn paired_tail_p(a: &[f64], b: &[f64], q: f64) -> f64 {
    if a.len() != b.len() || a.is_empty() || !(q > 0.0 && q < 1.0) {
        return 1.0;
    }
    let (sign, level) = if q < 0.5 { (-1.0, 1.0 - q) } else { (1.0, q) };
    let all: Vec<f64> = a.iter().chain(b).map(|sample| sign * sample).collect();
    let threshold = Threshold::new(all.clone(), level);
    let outside = 2 * all.iter().filter(|sample| !threshold.is_below(**sample)).count() as i64;
    let scores: Vec<i64> = doubled_ranks(&all).into_iter().map(|rank| (rank - outside).max(0)).collect();
    let (of_a, of_b) = scores.split_at(a.len());
    sign_flip_p(&of_a.iter().zip(of_b).map(|(a, b)| b - a).collect::<Vec<_>>())
}

/// The midrank of each sample, doubled so that it is a whole number.
fn doubled_ranks(all: &[f64]) -> Vec<i64> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_unstable_by(|one, other| all[*one].total_cmp(&all[*other]));
    let (mut scores, mut below) = (vec![0; all.len()], 0);
    for equal in order.chunk_by(|one, other| all[*one] == all[*other]) {
        equal.iter().for_each(|index| scores[*index] = (2 * below + equal.len() + 1) as i64);
        below += equal.len();
    }
    scores
}

/// The ratio of the quantile `q` of `b` to that of `a`, of samples in pairs, with the p-value of [`paired_tail_p`] and
/// the interval of the factors that it does not exclude.
///
/// `None` if the numbers of samples differ, or a quantile is not above zero. No interval if there are too few pairs.
pub fn paired_tail_ratio(a: &Samples, b: &Samples, q: f64, confidence: f64) -> Option<Ratio> {
    let quantiles = [a, b].map(|side| side.quantile(q));
    if a.count() != b.count() || quantiles.iter().any(|quantile| *quantile <= 0.0) {
        return None;
    }
    let centre = quantiles[1].ln() - quantiles[0].ln();
    let p_without = |log: f64| {
        let factor = log.exp();
        paired_tail_p(a.in_order(), &b.in_order().iter().map(|sample| sample / factor).collect::<Vec<_>>(), q)
    };
    let is_excluded = |log: f64| p_without(log) <= 1.0 - confidence;
    let end = |sign: f64| {
        let mut far = PRECISION;
        while !is_excluded(centre + sign * far) {
            far *= 2.0;
            if far > MAX_FACTOR.ln() {
                return None;
            }
        }
        let mut near = far / 2.0;
        while far - near > PRECISION * near.max(1.0) {
            let middle = f64::midpoint(near, far);
            if is_excluded(centre + sign * middle) { far = middle } else { near = middle }
        }
        Some((centre + sign * far).exp())
    };
    let interval = end(-1.0).zip(end(1.0)).map(|(low, high)| Interval { low, high, confidence });
    Some(Ratio { estimate: centre.exp(), interval, p_value: paired_tail_p(a.in_order(), b.in_order(), q) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds whose level rises by a fifth, with some noise of each side.
    fn drifting(pairs: usize, noise: usize) -> Vec<f64> {
        let wobble = |n: usize| 1.0 + 0.004 * ((n * noise % 11) as f64 - 5.0);
        (0..pairs).map(|n| 100.0 * (1.0 + 0.2 * n as f64 / pairs as f64) * wobble(n)).collect()
    }

    // Late samples of both sides are slow together: only what differs within a pair is a tail.
    #[test]
    fn a_drift_that_both_sides_have_is_no_tail() {
        let (a, b) = (drifting(30, 7), drifting(30, 5));
        let sides = [&a, &b].map(|side| Samples::new(side).unwrap());
        let paired = paired_tail_ratio(&sides[0], &sides[1], 0.75, 0.95).unwrap();
        let interval = paired.interval.unwrap();
        assert!(paired.p_value > 0.05 && interval.low > 0.95 && interval.high < 1.05, "{paired:?}");
        let unpaired = crate::quantile_ratio(&sides[0], &sides[1], 0.75, 0.95).unwrap().interval.unwrap();
        assert!(unpaired.high / unpaired.low > 1.05, "{unpaired:?}");
    }

    #[test]
    fn a_slow_fifth_of_one_side_is_a_tail() {
        let (a, mut b) = (drifting(30, 7), drifting(30, 5));
        b.iter_mut().step_by(5).for_each(|sample| *sample *= 5.0);
        assert!(paired_tail_p(&a, &b, 0.75) < 0.05);
        let mirrored = |side: &[f64]| side.iter().map(|sample| -sample).collect::<Vec<_>>();
        assert_eq!(paired_tail_p(&mirrored(&a), &mirrored(&b), 0.25), paired_tail_p(&a, &b, 0.75));
        assert!(paired_tail_p(&a, &b, 0.25) > 0.05, "the other tail is equal");
    }

    #[test]
    fn the_interval_contains_a_factor_and_the_p_value_excludes_one() {
        let a = Samples::new(&drifting(20, 7)).unwrap();
        let b = Samples::new(&drifting(20, 5).iter().map(|sample| sample * 1.3).collect::<Vec<_>>()).unwrap();
        let ratio = paired_tail_ratio(&a, &b, 0.75, 0.95).unwrap();
        assert!(ratio.interval.is_some_and(|interval| interval.contains(1.3) && !interval.contains(1.0)), "{ratio:?}");
        assert!(ratio.p_value < 0.05, "{ratio:?}");
    }

    #[test]
    fn sides_without_pairs_have_no_tail() {
        assert_eq!([paired_tail_p(&[1.0], &[], 0.75), paired_tail_p(&[1.0], &[2.0], 1.0)], [1.0; 2]);
        let [one, two] = [&[1.0][..], &[1.0, 2.0]].map(|side| Samples::new(side).unwrap());
        assert!(paired_tail_ratio(&one, &two, 0.75, 0.95).is_none());
        let zero = Samples::new(&[0.0, 0.0]).unwrap();
        assert!(paired_tail_ratio(&zero, &two, 0.75, 0.95).is_none());
        assert_eq!(paired_tail_ratio(&two, &two, 0.75, 0.95).unwrap().interval, None, "two pairs are too few");
    }
}
