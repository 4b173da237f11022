//! Verdicts, derived from an effect and its uncertainty.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Direction;
use wb_stats::{Interval, Ratio};

use crate::build::MeasuredValue;

/// The verdict on a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Significantly better, and by more than the threshold according to the estimate.
    Improved,
    /// Significantly worse, and by more than the threshold according to the estimate.
    Regressed,
    /// The whole interval is within the threshold.
    Equivalent,
    /// It would be improved or regressed, but each side is a single run, and the noise between runs is unknown; or
    /// neither direction is better.
    Differs,
    /// No other verdict is justified yet.
    Inconclusive,
    /// A side has no valid value.
    Invalid,
    /// A side does not have the metric.
    Missing,
    /// The sides have different definitions.
    Incomparable,
}

impl Verdict {
    /// All verdicts, from good to unknown.
    pub const ALL: [Self; 8] = [
        Self::Improved,
        Self::Equivalent,
        Self::Inconclusive,
        Self::Differs,
        Self::Regressed,
        Self::Missing,
        Self::Invalid,
        Self::Incomparable,
    ];

    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Regressed => "regressed",
            Self::Equivalent => "equivalent",
            Self::Differs => "differs",
            Self::Inconclusive => "inconclusive",
            Self::Invalid => "invalid",
            Self::Missing => "missing",
            Self::Incomparable => "incomparable",
        }
    }
}

/// The input of a verdict.
pub(super) struct VerdictInput {
    pub(super) values: [MeasuredValue; 2],
    pub(super) effect: Option<Ratio>,
    /// Whether the difference is significant.
    pub(super) differs: bool,
    pub(super) direction: Direction,
    /// The smallest relevant difference, as a fraction.
    pub(super) threshold: f64,
    /// Whether the values are based on several runs, a noise model or the user's trust in single runs.
    pub(super) trusted: bool,
}

impl VerdictInput {
    pub(super) fn verdict(&self) -> Verdict {
        match self.values {
            [MeasuredValue::Missing, _] | [_, MeasuredValue::Missing] => return Verdict::Missing,
            [MeasuredValue::Invalid, _] | [_, MeasuredValue::Invalid] => return Verdict::Invalid,
            [MeasuredValue::Known(_), MeasuredValue::Known(_)] => {}
        }
        let Some(effect) = self.effect else { return Verdict::Inconclusive };
        match judge(effect.estimate, effect.interval, self.differs, self.direction, self.threshold) {
            Verdict::Improved | Verdict::Regressed if !self.trusted => Verdict::Differs,
            verdict => verdict,
        }
    }
}

/// The verdict for a ratio, its interval, and whether the difference is significant; the threshold is a fraction.
pub(crate) fn judge(
    ratio: f64,
    interval: Option<Interval>,
    differs: bool,
    direction: Direction,
    threshold: f64,
) -> Verdict {
    // Symmetric for ratios: the threshold has the same distance from 1 in both directions.
    let (lower, upper) = (1.0 / (1.0 + threshold), 1.0 + threshold);
    let within = |value: f64| (lower..=upper).contains(&value);
    if interval.is_some_and(|interval| within(interval.low) && within(interval.high)) {
        return Verdict::Equivalent;
    }
    if !differs || within(ratio) {
        return Verdict::Inconclusive;
    }
    let better = match direction {
        Direction::Higher => ratio > 1.0,
        Direction::Lower => ratio < 1.0,
        // Neither direction is better.
        Direction::Neither => return Verdict::Differs,
    };
    if better { Verdict::Improved } else { Verdict::Regressed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(estimate: f64, low: f64, high: f64, differs: bool) -> VerdictInput {
        VerdictInput {
            values: [MeasuredValue::Known(1.0), MeasuredValue::Known(estimate)],
            effect: Some(Ratio { estimate, interval: Some(Interval { low, high, confidence: 0.95 }), p_value: 0.01 }),
            differs,
            direction: Direction::Higher,
            threshold: 0.05,
            trusted: true,
        }
    }

    #[test]
    fn a_verdict_needs_significance_and_relevance() {
        assert_eq!(judged(0.9, 0.85, 0.96, true).verdict(), Verdict::Regressed);
        assert_eq!(judged(1.1, 1.02, 1.2, true).verdict(), Verdict::Improved);
        assert_eq!(judged(0.98, 0.96, 0.99, true).verdict(), Verdict::Equivalent);
        assert_eq!(judged(0.96, 0.92, 0.99, true).verdict(), Verdict::Inconclusive);
        assert_eq!(judged(0.9, 0.7, 1.1, false).verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn the_direction_decides_what_is_an_improvement() {
        let lower = VerdictInput { direction: Direction::Lower, ..judged(0.9, 0.85, 0.94, true) };
        assert_eq!(lower.verdict(), Verdict::Improved);
        let neither = VerdictInput { direction: Direction::Neither, ..judged(0.9, 0.85, 0.94, true) };
        assert_eq!(neither.verdict(), Verdict::Differs);
    }

    #[test]
    fn single_runs_have_no_regression() {
        let single = VerdictInput { trusted: false, ..judged(0.5, 0.45, 0.55, true) };
        assert_eq!(single.verdict(), Verdict::Differs);
        let equal = VerdictInput { trusted: false, ..judged(1.0, 0.99, 1.01, false) };
        assert_eq!(equal.verdict(), Verdict::Equivalent);
    }

    #[test]
    fn missing_and_invalid_values_have_their_own_verdicts() {
        let missing = VerdictInput {
            values: [MeasuredValue::Known(1.0), MeasuredValue::Missing],
            ..judged(1.0, 1.0, 1.0, false)
        };
        assert_eq!(missing.verdict(), Verdict::Missing);
        let invalid = VerdictInput {
            values: [MeasuredValue::Invalid, MeasuredValue::Known(1.0)],
            ..judged(1.0, 1.0, 1.0, false)
        };
        assert_eq!(invalid.verdict(), Verdict::Invalid);
        let none = VerdictInput { effect: None, ..judged(1.0, 1.0, 1.0, false) };
        assert_eq!(none.verdict(), Verdict::Inconclusive);
    }
}
