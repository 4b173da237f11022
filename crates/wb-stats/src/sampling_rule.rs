use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::samples::validate_samples;
use crate::{STOPPING_CONFIDENCE, SampleError, Samples, Summary, widened_median_interval};

/// When to stop sampling
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "rule", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum SamplingRule {
    /// Until the interval of the median, at [`STOPPING_CONFIDENCE`] and widened for dependent samples, is narrow enough
    Precision {
        /// The required half-width, in percent of the median
        percent: f64,
        /// The minimum number of samples
        min_samples: usize,
        /// The maximum number of samples
        max_samples: usize,
    },
    /// pbench's rule: until the standard deviation of a set of samples is small enough; only the last set counts. A set
    /// of one sample is always enough
    MaxStddev {
        /// Number of samples in a set
        samples: usize,
        /// A set fails if its standard deviation is this many percent of its mean, or more
        max_stddev_percent: f64,
        /// The maximum number of failed sets
        max_failures: usize,
    },
    /// Until an external stopping rule ends it
    External {
        /// The minimum number of samples
        min_samples: usize,
        /// The maximum number of samples
        max_samples: usize,
    },
    /// Until an external stopping rule, which compares samples of several cells, ends it: no number of samples does
    Compared {
        /// The minimum number of samples
        min_samples: usize,
        /// The maximum number of samples that are compared; more are taken where another cell has no counterpart
        max_samples: usize,
    },
}

/// Whether there is time for more samples
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// Another sample can be taken
    Left,
    /// No further sample will be taken
    Spent,
}

/// What to do next
#[derive(Debug, Clone, PartialEq)]
pub enum SamplingDecision {
    /// Take another sample
    Continue,
    /// The rule is satisfied
    Done(Stop),
    /// Sampling stops although the rule is not satisfied
    NotConverged(Stop),
}

/// The counted samples and their dispersion when sampling stopped
#[derive(Debug, Clone, PartialEq)]
pub struct Stop {
    /// Which samples count, by position in time order
    pub counted: Range<usize>,
    /// Their dispersion, by the measure of the rule
    pub dispersion: Dispersion,
}

/// The dispersion of samples
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dispersion {
    /// Half the width of the median's interval, widened for dependent samples, in percent of the median
    HalfWidthPercent(f64),
    /// The standard deviation, in percent of the mean
    StddevPercent(f64),
    /// Too few samples for the measure
    TooFew,
    /// The samples differ and their centre is 0, so that a relative dispersion is undefined
    ZeroCentre,
}

impl SamplingRule {
    /// The minimum number of samples that can satisfy the rule.
    pub fn min_samples(&self) -> usize {
        match *self {
            Self::Precision { min_samples, .. }
            | Self::External { min_samples, .. }
            | Self::Compared { min_samples, .. } => min_samples,
            Self::MaxStddev { samples, .. } => samples.max(1),
        }
    }

    /// The rule after this number of disturbed samples, for each of which another one is taken.
    #[must_use]
    pub fn with_retakes(self, retakes: usize) -> Self {
        match self {
            Self::Precision { percent, min_samples, max_samples } => Self::Precision {
                percent,
                min_samples: min_samples.saturating_add(retakes),
                max_samples: max_samples.saturating_add(retakes),
            },
            other @ (Self::MaxStddev { .. } | Self::External { .. } | Self::Compared { .. }) => other,
        }
    }

    /// Whether its number of samples is fixed from outside, so that it has no budget unless one was requested.
    pub fn is_external(&self) -> bool {
        matches!(self, Self::External { .. } | Self::Compared { .. })
    }

    /// The maximum number of samples that the rule takes.
    pub fn max_samples(&self) -> usize {
        match *self {
            Self::Precision { max_samples, .. }
            | Self::External { max_samples, .. }
            | Self::Compared { max_samples, .. } => max_samples,
            Self::MaxStddev { samples: 0 | 1, .. } => 1,
            Self::MaxStddev { samples, max_failures, .. } => samples.saturating_mul(max_failures.max(1)),
        }
    }

    /// Decides from all samples so far, in time order. The same samples always give the same decision, so that an
    /// interrupted run can be resumed.
    pub fn decide(&self, in_order: &[f64], budget: Budget) -> Result<SamplingDecision, SampleError> {
        validate_samples(in_order)?;
        match *self {
            Self::Precision { percent, min_samples, max_samples } => {
                let spread = half_width(in_order)?;
                let enough = in_order.len() >= min_samples;
                let narrow = matches!(spread, Dispersion::HalfWidthPercent(reached) if reached <= percent);
                let stop = Stop { counted: 0..in_order.len(), dispersion: spread };
                Ok(decision(enough && narrow, in_order.len() >= max_samples, budget, stop))
            }
            Self::MaxStddev { samples, max_stddev_percent, max_failures } => {
                let set = samples.max(1);
                let whole = in_order.len() / set;
                let counted = if whole == 0 { 0..in_order.len() } else { (whole - 1) * set..whole * set };
                let spread = stddev(&in_order[counted.clone()])?;
                let at_end_of_set = whole > 0 && in_order.len() == whole * set;
                // A single value has no standard deviation that could be too large.
                let quiet =
                    set == 1 || matches!(spread, Dispersion::StddevPercent(reached) if reached < max_stddev_percent);
                let stop = Stop { counted, dispersion: spread };
                Ok(decision(whole > 0 && quiet, at_end_of_set && whole >= max_failures, budget, stop))
            }
            Self::External { min_samples, max_samples } => {
                let stop = Stop { counted: 0..in_order.len(), dispersion: half_width(in_order)? };
                let ended = in_order.len() >= max_samples || budget == Budget::Spent;
                Ok(decision(ended && in_order.len() >= min_samples, false, budget, stop))
            }
            // No number ends it: of a variant that never fails, more samples are taken than of one that does.
            Self::Compared { min_samples, .. } => {
                let stop = Stop { counted: 0..in_order.len(), dispersion: half_width(in_order)? };
                let is_enough = in_order.len() >= min_samples;
                Ok(decision(is_enough && budget == Budget::Spent, false, budget, stop))
            }
        }
    }
}

fn decision(satisfied: bool, limit: bool, budget: Budget, stop: Stop) -> SamplingDecision {
    if satisfied {
        SamplingDecision::Done(stop)
    } else if limit || budget == Budget::Spent {
        SamplingDecision::NotConverged(stop)
    } else {
        SamplingDecision::Continue
    }
}

fn half_width(in_order: &[f64]) -> Result<Dispersion, SampleError> {
    if in_order.is_empty() {
        return Ok(Dispersion::TooFew);
    }
    let samples = Samples::new(in_order)?;
    let Some(interval) = widened_median_interval(&samples, STOPPING_CONFIDENCE) else {
        return Ok(Dispersion::TooFew);
    };
    Ok(match interval.half_width_percent(samples.median()) {
        Some(percent) => Dispersion::HalfWidthPercent(percent),
        None => Dispersion::ZeroCentre,
    })
}

fn stddev(set: &[f64]) -> Result<Dispersion, SampleError> {
    if set.is_empty() {
        return Ok(Dispersion::TooFew);
    }
    let summary = Summary::new(&Samples::new(set)?);
    Ok(match (summary.stddev, summary.stddev_percent) {
        (None, _) => Dispersion::TooFew,
        (Some(0.0), _) => Dispersion::StddevPercent(0.0),
        (Some(_), Some(percent)) => Dispersion::StddevPercent(percent),
        (Some(_), None) => Dispersion::ZeroCentre,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRECISION: SamplingRule = SamplingRule::Precision { percent: 2.0, min_samples: 6, max_samples: 8 };
    const PBENCH: SamplingRule = SamplingRule::MaxStddev { samples: 3, max_stddev_percent: 5.0, max_failures: 2 };
    const STEADY: [f64; 3] = [100.0, 101.0, 102.0];
    const WILD: [f64; 3] = [100.0, 150.0, 200.0];

    #[test]
    fn an_external_rule_continues_until_its_limit_or_until_it_is_ended() {
        let rule = SamplingRule::External { min_samples: 2, max_samples: 3 };
        let done = |samples: &[f64], budget| match rule.decide(samples, budget).unwrap() {
            SamplingDecision::Continue => None,
            SamplingDecision::Done(_) => Some(true),
            SamplingDecision::NotConverged(_) => Some(false),
        };
        assert_eq!([1, 2, 3].map(|n| done(&WILD[..n], Budget::Left)), [None, None, Some(true)]);
        assert_eq!([1, 2, 3].map(|n| done(&WILD[..n], Budget::Spent)), [Some(false), Some(true), Some(true)]);
    }

    #[test]
    fn no_number_of_samples_ends_a_cell_that_is_compared() {
        let rule = SamplingRule::Compared { min_samples: 2, max_samples: 2 };
        assert_eq!([1, 2, 3].map(|n| left(rule, &WILD[..n])), [const { SamplingDecision::Continue }; 3]);
        assert!(matches!(spent(rule, &WILD[..1]), SamplingDecision::NotConverged(_)));
        assert!(matches!(spent(rule, &WILD), SamplingDecision::Done(Stop { counted, .. }) if counted == (0..3)));
    }

    fn left(rule: SamplingRule, samples: &[f64]) -> SamplingDecision {
        rule.decide(samples, Budget::Left).unwrap()
    }

    fn spent(rule: SamplingRule, samples: &[f64]) -> SamplingDecision {
        rule.decide(samples, Budget::Spent).unwrap()
    }

    fn half_width(n: usize, percent: f64) -> Stop {
        Stop { counted: 0..n, dispersion: Dispersion::HalfWidthPercent(percent) }
    }

    #[test]
    fn precision_never_ends_before_its_minimum_number_of_samples() {
        assert_eq!(left(PRECISION, &[]), SamplingDecision::Continue);
        assert_eq!(left(PRECISION, &[7.0; 5]), SamplingDecision::Continue);
        assert_eq!(left(PRECISION, &[7.0; 6]), SamplingDecision::Done(half_width(6, 0.0)));
    }

    #[test]
    fn precision_continues_until_narrow_and_reports_the_half_width_at_the_limit() {
        let mut samples = vec![100.0, 98.0, 103.0, 100.0, 100.0, 100.0];
        assert_eq!(left(PRECISION, &samples), SamplingDecision::Continue);
        assert_eq!(spent(PRECISION, &samples), SamplingDecision::NotConverged(half_width(6, 2.5)));
        samples.extend([100.0, 100.0]);
        assert_eq!(left(PRECISION, &samples), SamplingDecision::NotConverged(half_width(8, 2.5)));
        samples.extend([100.0, 100.0]);
        assert_eq!(left(PRECISION, &samples), SamplingDecision::Done(half_width(10, 0.0)));
    }

    #[test]
    fn precision_continues_while_samples_are_similar_to_those_before_them() {
        let rising = [98.5, 99.0, 99.5, 100.5, 101.0, 101.5];
        assert_eq!(left(PRECISION, &rising), SamplingDecision::Continue);
        let mixed = [99.5, 101.5, 98.5, 101.0, 99.0, 100.5];
        assert_eq!(left(PRECISION, &mixed), SamplingDecision::Done(half_width(6, 1.5)));
    }

    #[test]
    fn a_median_of_zero_converges_only_when_all_are_zero() {
        let around = [-1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0];
        let stop = Stop { counted: 0..8, dispersion: Dispersion::ZeroCentre };
        assert_eq!(left(PRECISION, &around), SamplingDecision::NotConverged(stop));
        assert_eq!(left(PRECISION, &[0.0; 6]), SamplingDecision::Done(half_width(6, 0.0)));
    }

    #[test]
    fn a_spent_budget_with_too_few_samples_is_reported() {
        for n in 0..6 {
            let stop = Stop { counted: 0..n, dispersion: Dispersion::TooFew };
            assert_eq!(spent(PRECISION, &vec![1.0; n]), SamplingDecision::NotConverged(stop));
        }
    }

    #[test]
    fn max_stddev_ends_with_the_first_quiet_set_and_only_that_counts() {
        assert_eq!(left(PBENCH, &STEADY[..2]), SamplingDecision::Continue);
        let SamplingDecision::Done(stop) = left(PBENCH, &[WILD, STEADY].concat()) else {
            panic!("the second set is quiet");
        };
        assert_eq!(stop.counted, 3..6);
        assert!(matches!(stop.dispersion, Dispersion::StddevPercent(p) if (p - 100.0 / 101.0).abs() < 1e-12));
    }

    #[test]
    fn max_stddev_stops_after_its_failures_and_counts_the_last_set() {
        assert_eq!(left(PBENCH, &WILD), SamplingDecision::Continue);
        assert_eq!(left(PBENCH, &[WILD, STEADY].concat()[..5]), SamplingDecision::Continue);
        let SamplingDecision::NotConverged(stop) = left(PBENCH, &[WILD, WILD].concat()) else {
            panic!("both sets are wild");
        };
        assert_eq!(stop.counted, 3..6);
    }

    #[test]
    fn max_stddev_out_of_time_within_a_set_falls_back_to_the_last_complete_one() {
        let SamplingDecision::NotConverged(stop) = spent(PBENCH, &[WILD, STEADY].concat()[..5]) else {
            panic!("no set is quiet");
        };
        assert_eq!(stop.counted, 0..3);
        let SamplingDecision::NotConverged(stop) = spent(PBENCH, &STEADY[..2]) else {
            panic!("no set is complete");
        };
        assert_eq!(stop.counted, 0..2);
    }

    #[test]
    fn max_stddev_with_sets_of_one_takes_one_sample() {
        let one = SamplingRule::MaxStddev { samples: 1, max_stddev_percent: 5.0, max_failures: 6 };
        assert_eq!((one.min_samples(), one.max_samples()), (1, 1));
        assert_eq!(left(one, &[]), SamplingDecision::Continue);
        assert_eq!(left(one, &[7.0]), SamplingDecision::Done(Stop { counted: 0..1, dispersion: Dispersion::TooFew }));
        assert_eq!((PBENCH.min_samples(), PBENCH.max_samples()), (3, 6));
    }

    #[test]
    fn a_sample_that_is_not_finite_is_an_error() {
        let samples = [1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0];
        assert!(PRECISION.decide(&samples, Budget::Left).is_err());
        assert!(PBENCH.decide(&samples, Budget::Left).is_err());
    }
}
