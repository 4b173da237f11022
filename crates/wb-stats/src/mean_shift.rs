//! The shift of the means of two sides, whatever their signs.

use crate::mean_ratio::{mean_difference_variance, mean_ratio, paired_mean_ratio, pooled_mean_ratio, pooled_variance};
use crate::{CONFIDENCE, Interval, Ratio, Samples, StudentRatio, VarianceEstimate};

/// The difference between the means of two sides, by Student's t distribution.
///
/// If both means are above zero, it is their ratio, as in [`mean_ratio`] and [`paired_mean_ratio`]. Otherwise it is the
/// difference of the means relative to the mean of the first side, which is infinite if that mean is zero.
///
/// If the samples are not in pairs, a difference must be significant by two tests. Welch's test is for sides that do
/// not vary alike. The test with the pooled variance is for a small side whose samples are all equal, as it may have
/// missed the samples that make the other side vary. The interval contains every value that at least one of the tests
/// does not reject.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanShift {
    /// The difference: of logarithms, or of the means in multiples of the unit.
    student: StudentRatio,
    /// The same with the pooled variance; of pairs, the same.
    pooled: StudentRatio,
    scale: Scale,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Scale {
    Logarithms,
    /// The larger magnitude of both means, which is not zero unless both are; and the mean of the first side.
    Values {
        unit: f64,
        first: f64,
        may_be_negative: bool,
    },
}

impl MeanShift {
    /// `None` if a side has a single sample, or a figure overflows.
    pub fn new(a: &Samples, b: &Samples) -> Option<Self> {
        let ratios = || Some([mean_ratio(a, b)?, pooled_mean_ratio(a, b)?]);
        Self::from_estimates(a, b, ratios, |unit| {
            Some([mean_difference_variance(a, b, unit)?, pooled_variance([a, b], [unit; 2])?])
        })
    }

    /// The shift between samples in pairs, with the variance of their differences; `None` as well if the numbers of
    /// samples differ.
    pub fn paired(a: &Samples, b: &Samples) -> Option<Self> {
        if a.count() != b.count() {
            return None;
        }
        let ratios = || Some([paired_mean_ratio(a, b)?; 2]);
        Self::from_estimates(a, b, ratios, |unit| {
            let pairs = a.in_order().iter().zip(b.in_order());
            let differences = Samples::new(&pairs.map(|(a, b)| b - a).collect::<Vec<_>>()).ok()?;
            let n = a.count() as f64;
            Some([VarianceEstimate { variance: (differences.stddev()? / unit).powi(2) / n, degrees: n - 1.0 }; 2])
        })
    }

    fn from_estimates(
        a: &Samples,
        b: &Samples,
        ratios: impl Fn() -> Option<[StudentRatio; 2]>,
        variances: impl Fn(f64) -> Option<[VarianceEstimate; 2]>,
    ) -> Option<Self> {
        let [from, to] = [a, b].map(Samples::mean);
        if from > 0.0 && to > 0.0 {
            let [student, pooled] = ratios()?;
            return Some(Self { student, pooled, scale: Scale::Logarithms });
        }
        let largest = from.abs().max(to.abs());
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let may_be_negative = a.min() < 0.0 || b.min() < 0.0;
        let [student, pooled] = variances(unit)?.map(|variance| StudentRatio::new((to - from) / unit, variance));
        let scale = Scale::Values { unit, first: from.abs(), may_be_negative };
        Some(Self { student: student?, pooled: pooled?, scale })
    }

    /// The difference: of logarithms, or in multiples of [`Self::unit`].
    pub fn difference(&self) -> f64 {
        self.student.log()
    }

    /// The variance of the difference: of both tests, that with the wider interval.
    pub fn variance(&self) -> VarianceEstimate {
        let [student, pooled] = [self.student, self.pooled].map(|test| test.half_width(CONFIDENCE));
        if pooled > student { self.pooled.variance() } else { self.student.variance() }
    }

    /// The unit of the difference; `None` if it is one of logarithms.
    pub fn unit(&self) -> Option<f64> {
        match self.scale {
            Scale::Logarithms => None,
            Scale::Values { unit, .. } => Some(unit),
        }
    }

    /// The p-value: the probability that equal sides are at least this far apart.
    pub fn p_value(&self) -> f64 {
        self.student.p_value().max(self.pooled.p_value())
    }

    /// The ratio that a difference amounts to.
    pub fn as_ratio(&self, difference: f64) -> f64 {
        match self.scale {
            Scale::Logarithms => difference.exp(),
            Scale::Values { .. } if difference == 0.0 => 1.0,
            Scale::Values { unit, first, may_be_negative } => {
                let ratio = 1.0 + difference * unit / first;
                if may_be_negative { ratio } else { ratio.max(0.0) }
            }
        }
    }

    /// The ratio and its interval; no interval if the confidence is not between 0 and 1, or an end is not finite where
    /// means are above zero.
    pub fn ratio(&self, confidence: f64) -> Ratio {
        let (estimate, p_value) = (self.as_ratio(self.difference()), self.p_value());
        if self.scale == Scale::Logarithms {
            let both = [self.student, self.pooled].map(|test| test.ratio(confidence).interval);
            let interval = both[0].zip(both[1]).map(|(student, pooled)| Interval {
                low: student.low.min(pooled.low),
                high: student.high.max(pooled.high),
                confidence,
            });
            return Ratio { estimate, interval, p_value };
        }
        let half = self.student.half_width(confidence).max(self.pooled.half_width(confidence));
        let difference = self.difference();
        let [low, high] = [difference - half, difference + half].map(|end| self.as_ratio(end));
        Ratio { estimate, interval: Some(Interval { low, high, confidence }), p_value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples::new(values).unwrap()
    }

    #[test]
    fn means_above_zero_have_the_ratio_of_means() {
        let (a, b) = (samples(&[1.0, 2.0, 3.0]), samples(&[2.0, 2.5, 4.0]));
        assert_eq!(MeanShift::new(&a, &b).unwrap().ratio(0.95), mean_ratio(&a, &b).unwrap().ratio(0.95));
        assert_eq!(MeanShift::paired(&a, &b).unwrap().ratio(0.95), paired_mean_ratio(&a, &b).unwrap().ratio(0.95));
    }

    /// Welch: t = 1.5811 with 3.448 degrees of freedom, whose density integrates to p = 0.2002.
    #[test]
    fn means_below_zero_are_compared_by_their_difference() {
        let shift = MeanShift::new(&samples(&[-1.0, -2.0, -3.0]), &samples(&[-2.0, -4.0, -5.0])).unwrap();
        assert!((shift.p_value() - 0.2002).abs() < 1e-4, "{}", shift.p_value());
        assert!((shift.ratio(0.95).estimate - (1.0 - (11.0 / 3.0 - 2.0) / 2.0)).abs() < 1e-12);
    }

    /// Seven samples in the fast one of two modes, beside 30 in it and 10 in the slow one: of all choices of seven of
    /// these 47 samples, 16 % have none of the ten.
    #[test]
    fn a_small_side_that_saw_one_of_two_modes_does_not_differ() {
        let mode = |level: f64, count: u32| (0..count).map(move |index| level * (1.0 + 0.001 * f64::from(index % 5)));
        for offset in [0.0, -1.5] {
            let small = samples(&mode(1.0, 7).map(|value| value + offset).collect::<Vec<_>>());
            let large = mode(1.0, 30).chain(mode(2.0, 10)).map(|value| value + offset).collect::<Vec<_>>();
            let large = samples(&large);
            for (a, b) in [(&small, &large), (&large, &small)] {
                let shift = MeanShift::new(a, b).unwrap();
                assert!(shift.p_value() > 0.1, "{offset}: {}", shift.p_value());
            }
        }
    }

    // A small side may lack the samples that vary: its own variance, near zero, made means differ.
    #[test]
    fn the_interval_excludes_equality_only_where_the_p_value_does() {
        let sets = [vec![1.0, 1.01, 1.02, 1.0, 0.99, 1.01, 1.0], vec![1.3, 1.9, 0.7, 1.0, 1.4, 2.5]];
        let other: Vec<f64> =
            (0..30).map(|index| 1.2 + 0.05 * f64::from(index % 7) + f64::from(u8::from(index % 4 == 0))).collect();
        for offset in [0.0, -1.35, -9.0] {
            for set in &sets {
                let [a, b] =
                    [set, &other].map(|side| samples(&side.iter().map(|value| value + offset).collect::<Vec<_>>()));
                for shift in [MeanShift::new(&a, &b).unwrap(), MeanShift::new(&b, &a).unwrap()] {
                    let p = shift.p_value();
                    assert!(p > 1e-6 && p < 0.9, "{offset}: {p}");
                    for (level, excludes) in [(p * 1.001, true), (p * 0.999, false)] {
                        let interval = shift.ratio(1.0 - level).interval.unwrap();
                        assert_eq!(interval.low > 1.0 || interval.high < 1.0, excludes, "{offset} {p}: {interval:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn from_zero_the_ratio_is_infinite_and_as_certain_as_the_difference() {
        let zeros = samples(&[0.0; 30]);
        let some = |count: usize| samples(&(0..30).map(|i| if i < count { 1000.0 } else { 0.0 }).collect::<Vec<_>>());
        let (one, nine) = (MeanShift::new(&zeros, &some(1)).unwrap(), MeanShift::new(&zeros, &some(9)).unwrap());
        assert!(one.p_value() > 0.3 && nine.p_value() < 0.002, "{} {}", one.p_value(), nine.p_value());
        let ratio = nine.ratio(0.95);
        let interval = ratio.interval.unwrap();
        assert_eq!((ratio.estimate, interval.high), (f64::INFINITY, f64::INFINITY));
        assert_eq!(one.ratio(0.95).interval.unwrap().low, 0.0, "nothing that cannot be negative is");
        let equal = MeanShift::new(&zeros, &zeros).unwrap().ratio(0.95);
        assert_eq!((equal.estimate, equal.p_value), (1.0, 1.0));
        let paired = MeanShift::paired(&zeros, &some(9)).unwrap();
        assert!(paired.p_value() < 0.002 && paired.ratio(0.95).estimate == f64::INFINITY);
    }
}
