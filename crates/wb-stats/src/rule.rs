use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::samples::each_is_sound;
use crate::{STOPPING_CONFIDENCE, SampleError, Samples, Summary, median_interval};

/// How many samples are enough
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "rule", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Rule {
    /// Until the interval of the median, at [`STOPPING_CONFIDENCE`], is narrow enough
    Precision {
        /// The half-width wanted, in percent of the median
        percent: f64,
        /// No end before so many
        min_samples: usize,
        /// No more than so many
        max_samples: usize,
    },
    /// pbench's: sets of samples until one spreads little enough; only the last set counts. A set of one sample is
    /// enough by itself
    MaxStddev {
        /// Samples in a set
        samples: usize,
        /// A set whose standard deviation is this many percent of its mean, or more, has failed
        max_stddev_percent: f64,
        /// After so many failed sets no other is begun
        max_failures: usize,
    },
    /// Until somebody outside has enough: who holds it against others, or took the samples elsewhere
    Compared {
        /// So many are taken for granted
        min_samples: usize,
        /// No more than so many
        max_samples: usize,
    },
}

/// Whether time is left for more samples
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// Another sample can be taken
    Left,
    /// No other sample will be taken
    Spent,
}

/// What to do next
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Take another sample
    Continue,
    /// The rule is satisfied
    Done(Stop),
    /// No more samples, and the rule is not satisfied
    NotConverged(Stop),
}

/// What there is at the end
#[derive(Debug, Clone, PartialEq)]
pub struct Stop {
    /// Which samples count, by position in time order
    pub counted: Range<usize>,
    /// How far they lie apart, by the measure of the rule
    pub spread: Spread,
}

/// How far samples lie apart
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Half the width of the median's interval, in percent of the median
    HalfWidthPercent(f64),
    /// The standard deviation, in percent of the mean
    StddevPercent(f64),
    /// Too few samples for the measure
    TooFew,
    /// The samples differ and their centre is 0, beside which no spread is small
    ZeroCentre,
}

impl Rule {
    /// The fewest samples that can satisfy it.
    pub fn fewest(&self) -> usize {
        match *self {
            Self::Precision { min_samples, .. } | Self::Compared { min_samples, .. } => min_samples,
            Self::MaxStddev { samples, .. } => samples.max(1),
        }
    }

    /// The most samples that it takes.
    pub fn most(&self) -> usize {
        match *self {
            Self::Precision { max_samples, .. } | Self::Compared { max_samples, .. } => max_samples,
            Self::MaxStddev { samples: 0 | 1, .. } => 1,
            Self::MaxStddev { samples, max_failures, .. } => samples * max_failures.max(1),
        }
    }

    /// Decides from all samples taken so far, in time order. The same samples always give the same answer, so that a
    /// run that was interrupted goes on where it was.
    pub fn decide(&self, in_order: &[f64], budget: Budget) -> Result<Decision, SampleError> {
        each_is_sound(in_order)?;
        match *self {
            Self::Precision { percent, min_samples, max_samples } => {
                let spread = half_width(in_order)?;
                let enough = in_order.len() >= min_samples;
                let narrow = matches!(spread, Spread::HalfWidthPercent(reached) if reached <= percent);
                let stop = Stop { counted: 0..in_order.len(), spread };
                Ok(decision(enough && narrow, in_order.len() >= max_samples, budget, stop))
            }
            Self::MaxStddev { samples, max_stddev_percent, max_failures } => {
                let set = samples.max(1);
                let whole = in_order.len() / set;
                let counted = if whole == 0 { 0..in_order.len() } else { (whole - 1) * set..whole * set };
                let spread = stddev(&in_order[counted.clone()])?;
                let at_end_of_set = whole > 0 && in_order.len() == whole * set;
                // One value has no deviation that could be too large.
                let quiet =
                    set == 1 || matches!(spread, Spread::StddevPercent(reached) if reached < max_stddev_percent);
                let stop = Stop { counted, spread };
                Ok(decision(whole > 0 && quiet, at_end_of_set && whole >= max_failures, budget, stop))
            }
            Self::Compared { min_samples, max_samples } => {
                let stop = Stop { counted: 0..in_order.len(), spread: half_width(in_order)? };
                let ended = in_order.len() >= max_samples || budget == Budget::Spent;
                Ok(decision(ended && in_order.len() >= min_samples, false, budget, stop))
            }
        }
    }
}

fn decision(satisfied: bool, limit: bool, budget: Budget, stop: Stop) -> Decision {
    if satisfied {
        Decision::Done(stop)
    } else if limit || budget == Budget::Spent {
        Decision::NotConverged(stop)
    } else {
        Decision::Continue
    }
}

fn half_width(in_order: &[f64]) -> Result<Spread, SampleError> {
    if in_order.is_empty() {
        return Ok(Spread::TooFew);
    }
    let samples = Samples::new(in_order)?;
    let Some(interval) = median_interval(&samples, STOPPING_CONFIDENCE) else {
        return Ok(Spread::TooFew);
    };
    Ok(match interval.half_width_percent(samples.median()) {
        Some(percent) => Spread::HalfWidthPercent(percent),
        None => Spread::ZeroCentre,
    })
}

fn stddev(set: &[f64]) -> Result<Spread, SampleError> {
    if set.is_empty() {
        return Ok(Spread::TooFew);
    }
    let summary = Summary::of(&Samples::new(set)?);
    Ok(match (summary.stddev, summary.stddev_percent) {
        (None, _) => Spread::TooFew,
        (Some(0.0), _) => Spread::StddevPercent(0.0),
        (Some(_), Some(percent)) => Spread::StddevPercent(percent),
        (Some(_), None) => Spread::ZeroCentre,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRECISION: Rule = Rule::Precision { percent: 2.0, min_samples: 6, max_samples: 8 };
    const PBENCH: Rule = Rule::MaxStddev { samples: 3, max_stddev_percent: 5.0, max_failures: 2 };
    const STEADY: [f64; 3] = [100.0, 101.0, 102.0];
    const WILD: [f64; 3] = [100.0, 150.0, 200.0];

    #[test]
    fn what_is_compared_goes_on_until_its_limit_or_until_it_is_ended() {
        let rule = Rule::Compared { min_samples: 2, max_samples: 3 };
        let done = |samples: &[f64], budget| match rule.decide(samples, budget).unwrap() {
            Decision::Continue => None,
            Decision::Done(_) => Some(true),
            Decision::NotConverged(_) => Some(false),
        };
        assert_eq!([1, 2, 3].map(|n| done(&WILD[..n], Budget::Left)), [None, None, Some(true)]);
        assert_eq!([1, 2, 3].map(|n| done(&WILD[..n], Budget::Spent)), [Some(false), Some(true), Some(true)]);
    }

    fn left(rule: Rule, samples: &[f64]) -> Decision {
        rule.decide(samples, Budget::Left).unwrap()
    }

    fn spent(rule: Rule, samples: &[f64]) -> Decision {
        rule.decide(samples, Budget::Spent).unwrap()
    }

    fn half_width(n: usize, percent: f64) -> Stop {
        Stop { counted: 0..n, spread: Spread::HalfWidthPercent(percent) }
    }

    #[test]
    fn precision_never_ends_before_its_least_number_of_samples() {
        assert_eq!(left(PRECISION, &[]), Decision::Continue);
        assert_eq!(left(PRECISION, &[7.0; 5]), Decision::Continue);
        assert_eq!(left(PRECISION, &[7.0; 6]), Decision::Done(half_width(6, 0.0)));
    }

    #[test]
    fn precision_goes_on_until_narrow_and_at_the_limit_says_how_far_it_came() {
        let mut samples = vec![98.0, 100.0, 100.0, 100.0, 100.0, 103.0];
        assert_eq!(left(PRECISION, &samples), Decision::Continue);
        assert_eq!(spent(PRECISION, &samples), Decision::NotConverged(half_width(6, 2.5)));
        samples.extend([100.0, 100.0]);
        assert_eq!(left(PRECISION, &samples), Decision::NotConverged(half_width(8, 2.5)));
        samples.extend([100.0, 100.0]);
        assert_eq!(left(PRECISION, &samples), Decision::Done(half_width(10, 0.0)));
    }

    #[test]
    fn a_median_of_zero_converges_only_when_all_are_zero() {
        let around = [-1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0];
        let stop = Stop { counted: 0..8, spread: Spread::ZeroCentre };
        assert_eq!(left(PRECISION, &around), Decision::NotConverged(stop));
        assert_eq!(left(PRECISION, &[0.0; 6]), Decision::Done(half_width(6, 0.0)));
    }

    #[test]
    fn time_out_with_too_few_samples_says_so() {
        for n in 0..6 {
            let stop = Stop { counted: 0..n, spread: Spread::TooFew };
            assert_eq!(spent(PRECISION, &vec![1.0; n]), Decision::NotConverged(stop));
        }
    }

    #[test]
    fn max_stddev_ends_with_the_first_quiet_set_which_alone_counts() {
        assert_eq!(left(PBENCH, &STEADY[..2]), Decision::Continue);
        let Decision::Done(stop) = left(PBENCH, &[WILD, STEADY].concat()) else {
            panic!("the second set is quiet");
        };
        assert_eq!(stop.counted, 3..6);
        assert!(matches!(stop.spread, Spread::StddevPercent(p) if (p - 100.0 / 101.0).abs() < 1e-12));
    }

    #[test]
    fn max_stddev_gives_up_after_its_failures_and_keeps_the_last_set() {
        assert_eq!(left(PBENCH, &WILD), Decision::Continue);
        assert_eq!(left(PBENCH, &[WILD, STEADY].concat()[..5]), Decision::Continue);
        let Decision::NotConverged(stop) = left(PBENCH, &[WILD, WILD].concat()) else {
            panic!("both sets are wild");
        };
        assert_eq!(stop.counted, 3..6);
    }

    #[test]
    fn max_stddev_out_of_time_within_a_set_falls_back_on_the_last_whole_one() {
        let Decision::NotConverged(stop) = spent(PBENCH, &[WILD, STEADY].concat()[..5]) else {
            panic!("no set is quiet");
        };
        assert_eq!(stop.counted, 0..3);
        let Decision::NotConverged(stop) = spent(PBENCH, &STEADY[..2]) else {
            panic!("no set is whole");
        };
        assert_eq!(stop.counted, 0..2);
    }

    #[test]
    fn max_stddev_with_sets_of_one_takes_one_sample() {
        let one = Rule::MaxStddev { samples: 1, max_stddev_percent: 5.0, max_failures: 6 };
        assert_eq!((one.fewest(), one.most()), (1, 1));
        assert_eq!(left(one, &[]), Decision::Continue);
        assert_eq!(left(one, &[7.0]), Decision::Done(Stop { counted: 0..1, spread: Spread::TooFew }));
        assert_eq!((PBENCH.fewest(), PBENCH.most()), (3, 6));
    }

    #[test]
    fn a_sample_that_is_no_number_is_an_error_and_no_decision() {
        let samples = [1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0];
        assert!(PRECISION.decide(&samples, Budget::Left).is_err());
        assert!(PBENCH.decide(&samples, Budget::Left).is_err());
    }
}
