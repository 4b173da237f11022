//! The ratio of the means of two sides.

use crate::{Samples, StudentRatio, VarianceEstimate};

/// The ratio of the mean of `b` to that of `a`, by Student's t distribution.
///
/// The variance of a logarithm of a mean is the squared relative standard error of the mean (the delta method: Casella,
/// Berger, Statistical Inference, 2nd ed., section 5.5.4), and the degrees of freedom of the sum are those of Welch
/// (1947) and Satterthwaite (1946). If no sample differs from the others of its side, any difference is certain.
///
/// Where the error of a mean is of the size of the mean, that variance is too small: a single sample can be most of it.
/// So the difference of the means is as many of its own standard errors away from zero, or more, as the logarithm is of
/// its.
///
/// It relies on means being about normal, and on each side showing how much it varies. At a nominal 5 %, with 13
/// samples against 100 up to a third of equal sides are significant: where large samples are rare, a small side has
/// none. So a difference needs [`pooled_mean_ratio`] as well ([`MeanShift`](crate::MeanShift)).
///
/// `None` if a side has a single sample, a mean is not above zero, or a figure overflows.
pub fn mean_ratio(a: &Samples, b: &Samples) -> Option<StudentRatio> {
    let mean = logarithmic_mean(a.mean(), b.mean())?;
    let on_logarithms = VarianceEstimate::sum(&[mean_variance(a, a.mean())?, mean_variance(b, b.mean())?]);
    let of_difference = mean_difference_variance(a, b, mean)?;
    StudentRatio::new(b.mean().ln() - a.mean().ln(), larger(on_logarithms, of_difference))
}

/// The same as [`mean_ratio`], but with the pooled variance of both sides: the variance of a side with few samples is
/// uncertain, and equal sides vary alike. It shows about as much as a permutation test of the means. With as many
/// samples on each side, the standard error is the same as in [`mean_ratio`].
pub fn pooled_mean_ratio(a: &Samples, b: &Samples) -> Option<StudentRatio> {
    let mean = logarithmic_mean(a.mean(), b.mean())?;
    let on_logarithms = pooled_variance([a, b], [a.mean(), b.mean()])?;
    let of_difference = pooled_variance([a, b], [mean; 2])?;
    StudentRatio::new(b.mean().ln() - a.mean().ln(), larger(on_logarithms, of_difference))
}

/// The ratio of the mean of `b` to that of `a` of samples in pairs, by Student's t distribution.
///
/// As [`mean_ratio`], with the variance of the difference of both sides' relative deviations from their means: what the
/// samples of a pair have in common cancels out.
///
/// `None` if the sides have different numbers of samples, or there is a single pair, a mean is not above zero, or a
/// figure overflows.
pub fn paired_mean_ratio(a: &Samples, b: &Samples) -> Option<StudentRatio> {
    let (a_mean, b_mean, n) = (a.mean(), b.mean(), a.count() as f64);
    if a.count() != b.count() {
        return None;
    }
    let mean = logarithmic_mean(a_mean, b_mean)?;
    // Relative to the logarithmic mean, as in `mean_ratio`; differences themselves would have what the pairs have in common.
    let scale = a_mean.max(b_mean) / mean;
    let pairs = a.in_order().iter().zip(b.in_order());
    let deviations = Samples::new(&pairs.map(|(a, b)| b / b_mean - a / a_mean).collect::<Vec<_>>()).ok()?;
    let variance = VarianceEstimate { variance: (deviations.stddev()? * scale).powi(2) / n, degrees: n - 1.0 };
    StudentRatio::new(b_mean.ln() - a_mean.ln(), variance)
}

/// The number by which a difference of two means is divided for the difference of their logarithms; `None` unless both
/// are above zero.
fn logarithmic_mean(a: f64, b: f64) -> Option<f64> {
    if a <= 0.0 || b <= 0.0 {
        return None;
    }
    // The quotient loses its digits where both are nearly equal, and all means agree.
    Some(if (b / a - 1.0).abs() < 1e-6 { f64::midpoint(a, b) } else { (b - a) / (b / a).ln() })
}

/// The variance of the difference of the means of two sides, in multiples of `unit`, with the degrees of freedom of
/// Welch (1947); `None` if a side has a single sample.
pub fn mean_difference_variance(a: &Samples, b: &Samples, unit: f64) -> Option<VarianceEstimate> {
    Some(VarianceEstimate::sum(&[mean_variance(a, unit)?, mean_variance(b, unit)?]))
}

/// The variance of the difference of the means of two sides that vary alike, each in multiples of its unit; `None` if a
/// side has a single sample.
pub(crate) fn pooled_variance(sides: [&Samples; 2], units: [f64; 2]) -> Option<VarianceEstimate> {
    let [a, b] = [0, 1].map(|side| mean_variance(sides[side], units[side]));
    let [a_count, b_count] = sides.map(|side| side.count() as f64);
    let (a, b) = (a?, b?);
    let degrees = a.degrees + b.degrees;
    // The variance of a sample is that of the mean, times the number of samples.
    let of_sample = (a.variance * a_count * a.degrees + b.variance * b_count * b.degrees) / degrees;
    Some(VarianceEstimate { variance: of_sample * (1.0 / a_count + 1.0 / b_count), degrees })
}

/// The variance of the mean of a side, in multiples of `unit`.
fn mean_variance(side: &Samples, unit: f64) -> Option<VarianceEstimate> {
    let n = side.count() as f64;
    Some(VarianceEstimate { variance: (side.stddev()? / unit).powi(2) / n, degrees: n - 1.0 })
}

fn larger(a: VarianceEstimate, b: VarianceEstimate) -> VarianceEstimate {
    if b.variance > a.variance { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(a: &[f64], b: &[f64]) -> Option<StudentRatio> {
        mean_ratio(&Samples::new(a).unwrap(), &Samples::new(b).unwrap())
    }

    fn paired(a: &[f64], b: &[f64]) -> Option<StudentRatio> {
        paired_mean_ratio(&Samples::new(a).unwrap(), &Samples::new(b).unwrap())
    }

    #[test]
    fn sides_that_do_not_vary_differ_for_certain_or_not_at_all() {
        let equal = of(&[0.1; 10], &[0.1; 7]).unwrap();
        assert_eq!((equal.p_value(), equal.standard_error()), (1.0, 0.0));
        let double = of(&[0.1; 10], &[0.2; 7]).unwrap().ratio(0.95);
        let interval = double.interval.unwrap();
        assert_eq!((double.p_value, interval.low, interval.high), (0.0, double.estimate, double.estimate));
        assert!((double.estimate - 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_both_samples_of_a_pair_have_in_common_cancels_out() {
        let (level, noise) = ([1.0, 3.0, 9.0, 2.0, 5.0, 4.0], [0.02, -0.01, 0.01, 0.0, -0.02, 0.01]);
        let side = |factor: f64, noise: &[f64]| {
            let values = level.iter().zip(noise).map(|(level, noise)| level * factor * (1.0 + noise));
            Samples::new(&values.collect::<Vec<_>>()).unwrap()
        };
        let (a, b) = (side(1.0, &[0.0; 6]), side(1.1, &noise));
        let (paired, unpaired) = (paired_mean_ratio(&a, &b).unwrap(), mean_ratio(&a, &b).unwrap());
        assert_eq!((paired.log(), paired.degrees()), (unpaired.log(), 5.0));
        assert!(paired.p_value() < 0.001 && unpaired.p_value() > 0.5, "{paired:?} {unpaired:?}");
        assert_eq!(paired_mean_ratio(&a, &Samples::new(&[1.0, 2.0]).unwrap()), None);
        assert_eq!(paired_mean_ratio(&Samples::new(&[-1.0, 1.0]).unwrap(), &Samples::new(&[1.0, 2.0]).unwrap()), None);
    }

    #[test]
    fn a_single_sample_is_no_evidence_whatever_its_size() {
        let quiet = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0, 1.0];
        for n in [6, 8, 10] {
            for outlier in [3.0, 30.0, 250.0, 1e6] {
                let mut noisy = quiet[..n].to_vec();
                noisy[0] = outlier;
                for (a, b) in [(&quiet[..n], &noisy[..]), (&noisy[..], &quiet[..n])] {
                    let (ratio, paired) = (of(a, b).unwrap(), paired(a, b).unwrap());
                    assert!(ratio.p_value() > 0.3 && paired.p_value() > 0.3, "{n} {outlier}: {ratio:?} {paired:?}");
                }
            }
        }
    }

    #[test]
    fn a_side_that_does_not_vary_adds_no_degrees_of_freedom() {
        assert_eq!(of(&[1.0; 10], &[1.0, 2.0, 3.0]).map(|ratio| ratio.degrees()), Some(2.0));
    }

    #[test]
    fn sides_without_a_ratio_or_a_variance_are_none() {
        assert_eq!(of(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(of(&[-1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(of(&[1.0, 2.0], &[-3.0, 2.0]), None);
        // The relative standard error overflows.
        assert_eq!(of(&[1e150, -1e150, 1e-300], &[1.0, 2.0]), None);
    }
}
