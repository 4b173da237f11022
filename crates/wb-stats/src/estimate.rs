use std::collections::BTreeMap;

use thiserror::Error;

use crate::{Interval, MIN_SAMPLES_FOR_INTERVAL, Samples, Summary};

/// A figure that was estimated, with its confidence interval
///
/// Figures that are derived from estimates get their interval by MOVER, the method of variance estimates recovery (Zou,
/// Donner 2008): the distances of the ends are added as standard errors are, each side on its own, so that no interval
/// needs to be symmetric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate
    pub value: f64,
    pub interval: Result<Interval, NoInterval>,
}

/// Why an estimate has no interval: completes "no interval: "
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum NoInterval {
    #[error(
        "a median of {count} {} has none, it takes {MIN_SAMPLES_FOR_INTERVAL}",
        if *count == 1 { "sample" } else { "samples" }
    )]
    TooFewSamples { count: usize },
    /// An end of an interval has no logarithm, which that of a ratio takes
    #[error("a ratio requires samples above zero")]
    NotAboveZero,
    #[error("its ends are too far apart for a number")]
    Overflow,
}

impl Estimate {
    /// The median of a summary
    pub fn of_median(summary: &Summary) -> Self {
        let interval = summary.median_interval.ok_or(NoInterval::TooFewSamples { count: summary.n });
        Self { value: summary.median, interval }
    }

    /// The ratio to another estimate, on logarithms; `None` if one is not above zero, or the ratio overflows. No
    /// interval if one side has none, or an end of one is not above zero. Both are taken as independent, though noise
    /// that they have in common makes the interval wider than it need be.
    pub fn ratio_to(&self, other: &Self) -> Option<Self> {
        if self.value <= 0.0 || other.value <= 0.0 {
            return None;
        }
        let value = Some(self.value / other.value).filter(|ratio| ratio.is_normal())?;
        let interval = || {
            let ((a_below, a_above), (b_below, b_above)) = (self.log_distances()?, other.log_distances()?);
            finite(Interval {
                low: value * (-a_below.hypot(b_above)).exp(),
                high: value * a_above.hypot(b_below).exp(),
                confidence: f64::min(self.interval?.confidence, other.interval?.confidence),
            })
        };
        Some(Self { value, interval: interval() })
    }

    /// The distances of the ends of the interval on logarithms.
    fn log_distances(&self) -> Result<(f64, f64), NoInterval> {
        let Interval { low, high, .. } = self.interval?;
        if low <= 0.0 {
            return Err(NoInterval::NotAboveZero);
        }
        Ok(((self.value / low).ln().max(0.0), (high / self.value).ln().max(0.0)))
    }

    /// The mean of several estimates; `None` of none. No interval if one of them has none.
    ///
    /// The correlation of two of them is given by their positions. Only a positive one counts: taking a negative one,
    /// which is an estimate, would narrow the interval.
    pub fn mean(estimates: &[Self], correlation: impl Fn(usize, usize) -> f64) -> Option<Self> {
        let n = estimates.len() as f64;
        let value = Some(estimates.iter().map(|of| of.value).sum::<f64>() / n).filter(|mean| mean.is_finite())?;
        let intervals: Result<Vec<Interval>, NoInterval> = estimates.iter().map(|of| of.interval).collect();
        let interval = intervals.and_then(|intervals| {
            let both = || estimates.iter().zip(&intervals);
            let below: Vec<f64> = both().map(|(of, ends)| (of.value - ends.low).max(0.0)).collect();
            let above: Vec<f64> = both().map(|(of, ends)| (ends.high - of.value).max(0.0)).collect();
            finite(Interval {
                low: value - correlated_norm(&below, &correlation) / n,
                high: value + correlated_norm(&above, &correlation) / n,
                confidence: intervals.iter().map(|ends| ends.confidence).fold(1.0, f64::min),
            })
        });
        Some(Self { value, interval })
    }
}

fn finite(interval: Interval) -> Result<Interval, NoInterval> {
    let is_finite = interval.low.is_finite() && interval.high.is_finite();
    if is_finite { Ok(interval) } else { Err(NoInterval::Overflow) }
}

/// The standard error of a sum of terms with these standard errors.
fn correlated_norm(errors: &[f64], correlation: impl Fn(usize, usize) -> f64) -> f64 {
    let pairs = (0..errors.len()).flat_map(|index| (0..index).map(move |other| (index, other)));
    let shared: f64 = pairs.map(|(a, b)| 2.0 * correlation(a, b).max(0.0) * errors[a] * errors[b]).sum();
    (errors.iter().map(|error| error.powi(2)).sum::<f64>() + shared).sqrt()
}

/// The correlation of the medians of two series of values by round, of which those of one round vary together; 0 if no
/// rounds are common.
///
/// A median follows the sides of the values, above or below it, not their sizes. So this is the correlation of sides
/// (Blomqvist 1950), in large samples whatever the distribution. A value without a counterpart adds to the variance of
/// its median only.
pub fn median_correlation(a: &BTreeMap<u32, f64>, b: &BTreeMap<u32, f64>) -> f64 {
    let (a, b) = (sides_of_median(a), sides_of_median(b));
    let shared: f64 = a.iter().filter_map(|(round, side)| Some(side * b.get(round)?)).sum();
    let count = |sides: &BTreeMap<u32, f64>| sides.values().filter(|side| **side != 0.0).count() as f64;
    let scale = (count(&a) * count(&b)).sqrt();
    if scale == 0.0 { 0.0 } else { shared / scale }
}

/// For each round, whether its value is above the median of all (1), below it (−1), or equal.
fn sides_of_median(values: &BTreeMap<u32, f64>) -> BTreeMap<u32, f64> {
    let Ok(samples) = Samples::new(&values.values().copied().collect::<Vec<_>>()) else { return BTreeMap::new() };
    let median = samples.median();
    let side = |value: f64| if value == median { 0.0 } else { (value - median).signum() };
    values.iter().map(|(round, value)| (*round, side(*value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CONFIDENCE, median_interval, median_ratio};

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, interval: Ok(Interval { low, high, confidence: 0.97 }) }
    }

    #[test]
    fn the_ratio_of_medians_has_the_interval_of_the_ratio_of_their_samples() {
        let sides = [[3.0, 1.0, 2.0, 4.0, 5.0, 9.0, 6.0], [30.0, 11.0, 20.0, 41.0, 50.0, 90.0, 60.0]];
        let [a, b] = sides.map(|side| Samples::new(&side).unwrap());
        let of = |side: &Samples| Estimate {
            value: side.median(),
            interval: Ok(median_interval(side, CONFIDENCE).unwrap()),
        };
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
        let mean = Estimate::mean(&[estimate(10.0, 8.0, 10.0), estimate(20.0, 18.0, 21.0)], |_, _| 0.0).unwrap();
        let ends = mean.interval.unwrap();
        assert_eq!((mean.value, ends.high), (15.0, 15.5));
        assert!((ends.low - (15.0 - 2.0_f64.sqrt())).abs() < 1e-12);
    }

    #[test]
    fn errors_that_are_shared_do_not_cancel() {
        let parts = [estimate(10.0, 8.0, 12.0), estimate(20.0, 18.0, 22.0)];
        let high = |correlation: f64| Estimate::mean(&parts, |_, _| correlation).unwrap().interval.unwrap().high;
        assert_eq!(high(1.0), 17.0);
        assert_eq!(high(-1.0), high(0.0), "never narrower");
    }

    fn by_round(values: &[f64]) -> BTreeMap<u32, f64> {
        (0..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn the_correlation_of_medians_is_that_of_sides() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let with = |other: fn(&f64) -> f64| median_correlation(&by_round(&x), &by_round(&x.map(|x| other(&x))));
        assert_eq!(with(|x| x * x), 1.0, "with an odd number of values, too");
        assert_eq!(with(|x| -x), -1.0);
        assert_eq!(with(|_| 1.0), 0.0, "equal values do not vary");
        assert_eq!(with(|x| if *x == 1.0 { 100.0 } else { *x }), 3.0 / 6.0, "the median becomes 5");
        assert_eq!(median_correlation(&by_round(&[]), &by_round(&x)), 0.0);
    }

    #[test]
    fn rounds_of_one_series_alone_weaken_the_correlation_of_medians() {
        let long = by_round(&[1.0, 4.0, 2.0, 3.0, 1.5, 3.5, 1.2, 3.7]);
        let short: BTreeMap<u32, f64> = long.iter().take(2).map(|(round, value)| (*round, *value)).collect();
        // Two of eight rounds: 2/√(2 · 8).
        assert_eq!(median_correlation(&long, &short), 0.5);
        let later: BTreeMap<u32, f64> = long.iter().map(|(round, value)| (round + 8, *value)).collect();
        assert_eq!(median_correlation(&long, &later), 0.0, "no round is common");
    }

    #[test]
    fn without_the_interval_of_a_part_there_is_none_of_the_whole_for_the_same_reason() {
        let few = Err(NoInterval::TooFewSamples { count: 3 });
        let (known, unknown) = (estimate(10.0, 8.0, 11.0), Estimate { value: 5.0, interval: few });
        assert_eq!(known.ratio_to(&unknown), Some(Estimate { value: 2.0, interval: few }));
        assert_eq!(unknown.ratio_to(&known).unwrap().interval, few);
        assert_eq!(Estimate::mean(&[known, unknown], |_, _| 0.0).unwrap().interval, few);
        assert_eq!(Estimate::mean(&[], |_, _| 0.0), None);
    }

    #[test]
    fn a_ratio_has_an_interval_only_above_zero() {
        let (known, below) = (estimate(10.0, 8.0, 11.0), estimate(10.0, -1.0, 11.0));
        assert_eq!(below.ratio_to(&known).unwrap().interval, Err(NoInterval::NotAboveZero));
        assert_eq!(known.ratio_to(&below).unwrap().interval, Err(NoInterval::NotAboveZero));
        assert_eq!(estimate(0.0, 0.0, 1.0).ratio_to(&known), None);
    }

    #[test]
    fn ends_beyond_all_numbers_are_no_interval() {
        let (large, wide) = (estimate(1e200, 1e200, 1e300), estimate(1.0, 1e-300, 1.0));
        assert_eq!(large.ratio_to(&wide).unwrap().interval, Err(NoInterval::Overflow));
    }

    #[test]
    fn a_missing_interval_is_explained() {
        let samples = Samples::new(&[1.0, 2.0, 3.0]).unwrap();
        let reasons = [
            Estimate::of_median(&Summary::new(&samples)).interval.unwrap_err(),
            NoInterval::NotAboveZero,
            NoInterval::Overflow,
        ];
        assert_eq!(
            reasons.map(|reason| format!("no interval: {reason}")),
            [
                "no interval: a median of 3 samples has none, it takes 6",
                "no interval: a ratio requires samples above zero",
                "no interval: its ends are too far apart for a number",
            ]
        );
    }
}
