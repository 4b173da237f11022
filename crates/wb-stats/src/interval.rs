use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unimodal::Unimodal;
use crate::{Samples, dependence};

/// The default confidence of intervals
pub const CONFIDENCE: f64 = 0.95;

/// The confidence of the median's interval if the samples themselves determined their number.
///
/// Stopping at the first narrow interval favours intervals that are narrow by chance: at a nominal 95 %, as few as 93 %
/// of them cover the median. At 31/32, the maximum for 6 samples, 95 % remains; the table in `docs/statistics.md` shows
/// for which populations.
pub const STOPPING_CONFIDENCE: f64 = 1.0 - 1.0 / 32.0;

/// The minimum number of samples with which the median has an interval at [`CONFIDENCE`] or [`STOPPING_CONFIDENCE`].
pub const MIN_SAMPLES_FOR_INTERVAL: usize = 6;

/// A confidence interval of a population quantile: between two order statistics, or that widened for dependent samples
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The lower end; itself a sample unless the interval is widened
    pub low: f64,
    /// The upper end; itself a sample unless the interval is widened
    pub high: f64,
    /// The actual confidence, as a fraction of 1; at least the requested one, since ranks are whole numbers. Of
    /// dependent samples, that of as many independent ones
    pub confidence: f64,
}

impl Interval {
    /// Half the width relative to a centre, in percent.
    ///
    /// An interval of zero width is 0 % wide everywhere; otherwise `None` if the centre is 0, since the relative width
    /// is undefined.
    pub fn half_width_percent(&self, centre: f64) -> Option<f64> {
        let half = (self.high - self.low) / 2.0;
        if half == 0.0 {
            return Some(0.0);
        }
        Some(half / centre.abs() * 100.0).filter(|percent| percent.is_finite())
    }

    /// Whether a value lies in the interval, ends included
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The interval with both ends further from a centre in it by a factor, which is 1 or more
    #[must_use]
    fn widened(self, centre: f64, factor: f64) -> Self {
        if factor == 1.0 {
            return self;
        }
        // Rounding must not narrow it.
        Self {
            low: self.low.min(centre - (centre - self.low) * factor),
            high: self.high.max(centre + (self.high - centre) * factor),
            ..self
        }
    }

    /// The interval of a ratio, or of another positive quantity, with both ends further from the estimate by a factor, which
    /// is 1 or more, on logarithms; not on logarithms if an end is not above zero
    #[must_use]
    pub fn widened_ratio(self, estimate: f64, factor: f64) -> Self {
        if factor == 1.0 || self.low <= 0.0 || estimate <= 0.0 {
            return self.widened(estimate, factor);
        }
        // Neither zero nor infinite, however far the ends are apart.
        let end = |end: f64| (estimate * (end / estimate).powf(factor)).clamp(f64::MIN_POSITIVE, f64::MAX);
        Self { low: self.low.min(end(self.low)), high: self.high.max(end(self.high)), ..self }
    }
}

/// The distribution-free confidence interval of the population median, of independent samples. `None` if there are too
/// few samples for the confidence: fewer than 6 for 95 %. See [`quantile_interval`], and [`widened_median_interval`] for
/// samples in time order.
pub fn median_interval(samples: &Samples, confidence: f64) -> Option<Interval> {
    quantile_interval(samples, 0.5, confidence)
}

/// The confidence interval of the population median, of samples in time order: [`median_interval`], widened around the
/// median if successive samples are similar (see [`dependence`](crate::dependence())): on logarithms if all samples are
/// above zero, so that both ends are. Sampling rules decide by this interval, and summaries show it.
pub fn widened_median_interval(samples: &Samples, confidence: f64) -> Option<Interval> {
    let (interval, factor) = (median_interval(samples, confidence)?, dependence::widening(samples));
    Some(if samples.min() > 0.0 {
        interval.widened_ratio(samples.median(), factor)
    } else {
        interval.widened(samples.median(), factor)
    })
}

/// The distribution-free confidence interval of the population quantile `p`, between two order statistics.
///
/// The number of n samples below the quantile is binomial whatever the distribution (Thompson 1936; David, Nagaraja,
/// Order Statistics, 3rd ed., section 7.1). Each end is the innermost order statistic with an error probability of at
/// most half of 1 − confidence, so that either end is also a one-sided bound. Exact for a continuous population,
/// conservative for one with ties. Assumes independent samples and a fixed number of samples.
///
/// `None` if no order statistic reaches the confidence on one side, or if `p` or the confidence is not between 0 and 1.
pub fn quantile_interval(samples: &Samples, p: f64, confidence: f64) -> Option<Interval> {
    let within = |x: f64| x > 0.0 && x < 1.0;
    if !within(p) || !within(confidence) {
        return None;
    }
    // Confidences like 0.9375 can be reached exactly; rounding must not prevent it.
    let tail = (1.0 - confidence) / 2.0 * (1.0 + 1e-12);
    let n = samples.count();
    let below = binomial(n, p);

    // Ranks count from 1. The lower end errs when fewer than `low` samples are below the quantile, the upper end when
    // `high` or more are.
    let (mut low, mut low_errs) = (below.first as usize, 0.0);
    for mass in &below.masses {
        if low_errs + mass > tail {
            break;
        }
        (low, low_errs) = (low + 1, low_errs + mass);
    }
    let (mut high, mut high_errs) = (below.first as usize + below.masses.len(), 0.0);
    for mass in below.masses.iter().rev() {
        if high_errs + mass > tail {
            break;
        }
        (high, high_errs) = (high - 1, high_errs + mass);
    }
    if low == 0 || high > n {
        return None;
    }
    Some(Interval {
        low: samples.sorted()[low - 1],
        high: samples.sorted()[high - 1],
        confidence: 1.0 - low_errs - high_errs,
    })
}

/// The binomial distribution of `n` trials with probability `p`.
fn binomial(n: usize, p: f64) -> Unimodal {
    const NEGLIGIBLE: f64 = 1e-20;
    let odds = p / (1.0 - p);
    let mode = (((n + 1) as f64 * p) as usize).min(n);
    Unimodal::new([0, mode as u64, n as u64], NEGLIGIBLE, |k| (n as u64 - k) as f64 / (k + 1) as f64 * odds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(n: usize, p: f64, confidence: f64) -> Option<(usize, usize, f64)> {
        let ranks: Vec<f64> = (1..=n).map(|rank| rank as f64).collect();
        let interval = quantile_interval(&Samples::new(&ranks).unwrap(), p, confidence)?;
        Some((interval.low as usize, interval.high as usize, interval.confidence))
    }

    #[test]
    fn a_median_has_an_interval_at_95_percent_from_6_samples_on() {
        assert_eq!(ranks(5, 0.5, 0.95), None);
        let (low, high, reached) = ranks(6, 0.5, 0.95).unwrap();
        assert_eq!((low, high), (1, 6));
        assert!((reached - 0.96875).abs() < 1e-12);
    }

    #[test]
    fn a_confidence_that_can_be_reached_exactly_is_reached() {
        assert_eq!(ranks(5, 0.5, 0.9375).map(|(low, high, _)| (low, high)), Some((1, 5)));
    }

    #[test]
    fn a_confidence_or_quantile_out_of_range_has_no_interval() {
        for (p, confidence) in [(0.5, 1.0), (0.5, 0.0), (0.5, f64::NAN), (0.0, 0.9), (1.0, 0.9), (f64::NAN, 0.9)] {
            assert_eq!(ranks(1000, p, confidence), None);
        }
    }

    #[test]
    fn an_interval_is_widened_only_for_dependent_samples() {
        let interval = |x: &[f64]| {
            let samples = Samples::new(x).unwrap();
            (median_interval(&samples, 0.95).unwrap(), widened_median_interval(&samples, 0.95).unwrap())
        };
        let (independent, widened) = interval(&[0.1, 7.3, 1.1, 5.0, 2.0, 6.0]);
        assert_eq!(independent, widened);
        // √6 times as wide around the median of 3.5, on logarithms.
        let (independent, widened) = interval(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!((independent.low, independent.high), (1.0, 6.0));
        assert!((widened.low - 3.5 * (1.0 / 3.5_f64).powf(6.0_f64.sqrt())).abs() < 1e-12, "{widened:?}");
        assert!((widened.high - 3.5 * (6.0 / 3.5_f64).powf(6.0_f64.sqrt())).abs() < 1e-12, "{widened:?}");
        assert_eq!(widened.confidence, independent.confidence);
    }

    #[test]
    fn logarithms_widen_an_interval_only_if_every_sample_has_one() {
        let widened = |x: &[f64]| widened_median_interval(&Samples::new(x).unwrap(), 0.95).unwrap();
        let of_differences = widened(&[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]);
        assert!((of_differences.high - 2.5 * 6.0_f64.sqrt()).abs() < 1e-12, "{of_differences:?}");
        // Both ends of nine samples are inner ones, here above zero.
        let of_counts = widened(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert!((of_counts.low - (4.0 - 3.0 * 3.0)).abs() < 1e-12, "{of_counts:?}");
        assert!((of_counts.high - (4.0 + 3.0 * 3.0)).abs() < 1e-12, "{of_counts:?}");
    }

    #[test]
    fn the_interval_of_a_ratio_is_widened_on_logarithms() {
        let widened = |low, high, estimate, factor| {
            let Interval { low, high, .. } = Interval { low, high, confidence: 0.95 }.widened_ratio(estimate, factor);
            (low, high)
        };
        assert_eq!(widened(0.5, 2.0, 1.0, 2.0), (0.25, 4.0));
        assert_eq!(widened(0.5, 2.0, 1.0, 1.0), (0.5, 2.0));
        assert_eq!(widened(-0.5, 2.0, 1.0, 2.0), (-2.0, 3.0));
        assert_eq!(widened(0.5, 2.0, 4.0, 2.0), (0.0625, 2.0), "never narrower");
    }

    #[test]
    fn the_relative_width_at_a_median_of_zero_is_undefined_unless_the_width_is_zero() {
        let interval = |low, high| Interval { low, high, confidence: 0.95 };
        assert_eq!(interval(-1.0, 1.0).half_width_percent(0.0), None);
        assert_eq!(interval(0.0, 0.0).half_width_percent(0.0), Some(0.0));
        assert_eq!(interval(-103.0, -97.0).half_width_percent(-100.0), Some(3.0));
    }
}
