//! What follows from an effect and how sure it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Direction;
use wb_stats::{Interval, Ratio};

use crate::build::MeasuredValue;

/// What is said of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Better, beyond chance, and by more than the threshold as far as is known.
    Improved,
    /// Worse, beyond chance, and by more than the threshold as far as is known.
    Regressed,
    /// The whole interval lies within the threshold.
    Equivalent,
    /// It would be improved or regressed, but each side is one run, and nobody knows by how much runs differ.
    Differs,
    /// None of these can be said.
    Inconclusive,
    /// A side has it, and no number that counts.
    Invalid,
    /// A side does not have it.
    Missing,
    /// Both sides have it, defined otherwise.
    Incomparable,
}

impl Verdict {
    /// Every one, from what is good to what is not known.
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

    /// In a word, as files have it.
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

/// All that a verdict depends on.
pub(super) struct VerdictInput {
    pub(super) values: [MeasuredValue; 2],
    pub(super) effect: Option<Ratio>,
    /// Whether chance is ruled out.
    pub(super) differs: bool,
    pub(super) direction: Direction,
    /// As a fraction.
    pub(super) threshold: f64,
    /// Whether more than one run, or the user's word, stands behind the values.
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

/// What follows from a ratio, its interval, and whether chance is ruled out; the threshold is a fraction.
pub(crate) fn judge(
    ratio: f64,
    interval: Option<Interval>,
    differs: bool,
    direction: Direction,
    threshold: f64,
) -> Verdict {
    // Symmetric for ratios: what is 5 % more one way is as far the other way.
    let (least, most) = (1.0 / (1.0 + threshold), 1.0 + threshold);
    let within = |value: f64| (least..=most).contains(&value);
    if interval.is_some_and(|interval| within(interval.low) && within(interval.high)) {
        return Verdict::Equivalent;
    }
    if !differs || within(ratio) {
        return Verdict::Inconclusive;
    }
    let better = match direction {
        Direction::Higher => ratio > 1.0,
        Direction::Lower => ratio < 1.0,
        // Nobody said which way is good.
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
    fn a_difference_counts_beyond_chance_and_beyond_the_threshold() {
        assert_eq!(judged(0.9, 0.85, 0.96, true).verdict(), Verdict::Regressed);
        assert_eq!(judged(1.1, 1.02, 1.2, true).verdict(), Verdict::Improved);
        assert_eq!(judged(0.98, 0.96, 0.99, true).verdict(), Verdict::Equivalent);
        assert_eq!(judged(0.96, 0.92, 0.99, true).verdict(), Verdict::Inconclusive);
        assert_eq!(judged(0.9, 0.7, 1.1, false).verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn the_direction_decides_which_is_good() {
        let lower = VerdictInput { direction: Direction::Lower, ..judged(0.9, 0.85, 0.94, true) };
        assert_eq!(lower.verdict(), Verdict::Improved);
        let neither = VerdictInput { direction: Direction::Neither, ..judged(0.9, 0.85, 0.94, true) };
        assert_eq!(neither.verdict(), Verdict::Differs);
    }

    #[test]
    fn one_run_a_side_has_no_regression() {
        let single = VerdictInput { trusted: false, ..judged(0.5, 0.45, 0.55, true) };
        assert_eq!(single.verdict(), Verdict::Differs);
        let equal = VerdictInput { trusted: false, ..judged(1.0, 0.99, 1.01, false) };
        assert_eq!(equal.verdict(), Verdict::Equivalent);
    }

    #[test]
    fn what_is_not_there_is_said_to_be_so() {
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
