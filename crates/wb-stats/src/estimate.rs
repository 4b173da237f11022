use crate::{Interval, Summary};

/// A figure that was estimated, with its confidence interval
///
/// Figures that are derived from independent estimates get their interval by MOVER, the method of variance estimates
/// recovery (Zou, Donner 2008): the distances of the ends are added as standard errors are, each side on its own, so
/// that no interval needs to be symmetric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate
    pub value: f64,
    /// Its interval, `None` if there are too few samples for one
    pub interval: Option<Interval>,
}

impl Estimate {
    /// The median of a summary
    pub fn of_median(summary: &Summary) -> Self {
        Self { value: summary.median, interval: summary.median_interval }
    }

    /// The ratio to another estimate, on logarithms; `None` if one is not above zero, or the ratio overflows. No interval
    /// if one side has none, or an end of one is not above zero.
    pub fn ratio_to(&self, other: &Self) -> Option<Self> {
        if self.value <= 0.0 || other.value <= 0.0 {
            return None;
        }
        let value = Some(self.value / other.value).filter(|ratio| ratio.is_normal())?;
        let interval = self.interval.zip(other.interval).filter(|(a, b)| a.low > 0.0 && b.low > 0.0).map(|(a, b)| {
            let logs = |of: &Self, ends: &Interval| {
                ((of.value / ends.low).ln().max(0.0), (ends.high / of.value).ln().max(0.0))
            };
            let ((a_below, a_above), (b_below, b_above)) = (logs(self, &a), logs(other, &b));
            Interval {
                low: value * (-a_below.hypot(b_above)).exp(),
                high: value * a_above.hypot(b_below).exp(),
                confidence: a.confidence.min(b.confidence),
            }
        });
        Some(Self { value, interval: interval.filter(is_finite) })
    }

    /// The mean of several estimates; `None` of none. No interval if one of them has none.
    pub fn mean(estimates: &[Self]) -> Option<Self> {
        let n = estimates.len() as f64;
        let value = Some(estimates.iter().map(|of| of.value).sum::<f64>() / n).filter(|mean| mean.is_finite())?;
        let intervals: Option<Vec<Interval>> = estimates.iter().map(|of| of.interval).collect();
        let interval = intervals.map(|intervals| {
            let both = || estimates.iter().zip(&intervals);
            let distance = |squares: f64| squares.sqrt() / n;
            Interval {
                low: value - distance(both().map(|(of, ends)| (of.value - ends.low).max(0.0).powi(2)).sum()),
                high: value + distance(both().map(|(of, ends)| (ends.high - of.value).max(0.0).powi(2)).sum()),
                confidence: intervals.iter().map(|ends| ends.confidence).fold(1.0, f64::min),
            }
        });
        Some(Self { value, interval: interval.filter(is_finite) })
    }
}

fn is_finite(interval: &Interval) -> bool {
    interval.low.is_finite() && interval.high.is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CONFIDENCE, Samples, median_interval, median_ratio};

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, interval: Some(Interval { low, high, confidence: 0.97 }) }
    }

    #[test]
    fn the_ratio_of_medians_has_the_interval_of_the_ratio_of_their_samples() {
        let sides = [[3.0, 1.0, 2.0, 4.0, 5.0, 9.0, 6.0], [30.0, 11.0, 20.0, 41.0, 50.0, 90.0, 60.0]];
        let [a, b] = sides.map(|side| Samples::new(&side).unwrap());
        let of = |side: &Samples| Estimate { value: side.median(), interval: median_interval(side, CONFIDENCE) };
        let (expected, ratio) = (median_ratio(&a, &b, CONFIDENCE).unwrap(), of(&b).ratio_to(&of(&a)).unwrap());
        let (expected_ends, ends) = (expected.interval.unwrap(), ratio.interval.unwrap());
        for (left, right) in
            [(expected.estimate, ratio.value), (expected_ends.low, ends.low), (expected_ends.high, ends.high)]
        {
            assert!((left / right - 1.0).abs() < 1e-12, "{left} {right}");
        }
    }

    #[test]
    fn the_error_of_a_mean_is_less_than_those_of_its_parts() {
        let mean = Estimate::mean(&[estimate(10.0, 8.0, 10.0), estimate(20.0, 18.0, 21.0)]).unwrap();
        let ends = mean.interval.unwrap();
        assert_eq!((mean.value, ends.high), (15.0, 15.5));
        assert!((ends.low - (15.0 - 2.0_f64.sqrt())).abs() < 1e-12);
    }

    #[test]
    fn without_the_interval_of_a_part_there_is_none_of_the_whole() {
        let (known, unknown) = (estimate(10.0, 8.0, 11.0), Estimate { value: 5.0, interval: None });
        assert_eq!(known.ratio_to(&unknown), Some(Estimate { value: 2.0, interval: None }));
        assert_eq!(Estimate::mean(&[known, unknown]).unwrap().interval, None);
        assert_eq!(estimate(10.0, -1.0, 11.0).ratio_to(&known).unwrap().interval, None, "no logarithm");
        assert_eq!(Estimate::mean(&[]), None);
        assert_eq!(estimate(0.0, 0.0, 1.0).ratio_to(&known), None);
    }
}
