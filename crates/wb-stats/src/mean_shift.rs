//! The shift of the means of two sides, whatever their signs.

use crate::{
    Interval, Ratio, Samples, StudentRatio, VarianceEstimate, mean_difference_variance, mean_ratio, paired_mean_ratio,
};

/// How far the mean of one side is from that of another, by Student's t distribution.
///
/// A ratio, as [`mean_ratio`] and [`paired_mean_ratio`] have it, if both means are above zero. Otherwise the difference of the
/// means, relative to that of the first side: infinite if that is zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanShift {
    /// The difference: of logarithms, or of the means in multiples of the unit.
    student: StudentRatio,
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
        Self::of(a, b, mean_ratio, |unit| mean_difference_variance(a, b, unit))
    }

    /// Of samples in pairs, with the variance of their differences; `None` as well if the numbers of samples differ.
    pub fn paired(a: &Samples, b: &Samples) -> Option<Self> {
        if a.count() != b.count() {
            return None;
        }
        Self::of(a, b, paired_mean_ratio, |unit| {
            let pairs = a.in_order().iter().zip(b.in_order());
            let differences = Samples::new(&pairs.map(|(a, b)| b - a).collect::<Vec<_>>()).ok()?;
            let n = a.count() as f64;
            Some(VarianceEstimate { variance: (differences.stddev()? / unit).powi(2) / n, degrees: n - 1.0 })
        })
    }

    fn of(
        a: &Samples,
        b: &Samples,
        ratio: fn(&Samples, &Samples) -> Option<StudentRatio>,
        variance: impl Fn(f64) -> Option<VarianceEstimate>,
    ) -> Option<Self> {
        let [from, to] = [a, b].map(Samples::mean);
        if from > 0.0 && to > 0.0 {
            return Some(Self { student: ratio(a, b)?, scale: Scale::Logarithms });
        }
        let largest = from.abs().max(to.abs());
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let may_be_negative = a.min() < 0.0 || b.min() < 0.0;
        let student = StudentRatio::new((to - from) / unit, variance(unit)?)?;
        Some(Self { student, scale: Scale::Values { unit, first: from.abs(), may_be_negative } })
    }

    /// The difference: of logarithms, or in multiples of [`Self::unit`].
    pub fn difference(&self) -> f64 {
        self.student.log()
    }

    /// The variance of the difference.
    pub fn variance(&self) -> VarianceEstimate {
        self.student.variance()
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
        self.student.p_value()
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

    /// The ratio and its interval.
    pub fn ratio(&self, confidence: f64) -> Ratio {
        if self.scale == Scale::Logarithms {
            return self.student.ratio(confidence);
        }
        let (difference, half) = (self.difference(), self.student.half_width(confidence));
        let [low, high] = [difference - half, difference + half].map(|end| self.as_ratio(end));
        let interval = Interval { low, high, confidence };
        Ratio { estimate: self.as_ratio(difference), interval: Some(interval), p_value: self.p_value() }
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
