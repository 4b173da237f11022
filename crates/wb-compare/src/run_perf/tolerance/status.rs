//! The status of a check, derived from its score.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Direction;

use crate::id::Statistic;

/// The status of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Better by more than the tolerance.
    Improvement,
    /// Better by more than half the tolerance.
    MinorGain,
    /// Within half the tolerance; without a better direction, within the tolerance.
    Equal,
    /// Worse by more than half the tolerance.
    MinorLoss,
    /// Worse by more than the tolerance.
    Regression,
    /// Beyond the tolerance, if neither direction is better.
    Changed,
    /// A side does not have the check.
    Missing,
    /// A side has no valid value.
    Invalid,
    /// The sides have different definitions.
    Incomparable,
}

impl Status {
    /// All statuses, from best to worst.
    pub const ALL: [Self; 9] = [
        Self::Improvement,
        Self::MinorGain,
        Self::Equal,
        Self::MinorLoss,
        Self::Regression,
        Self::Changed,
        Self::Missing,
        Self::Invalid,
        Self::Incomparable,
    ];

    /// The status of a score; `sign` is the factor by which positive is better.
    pub(super) fn of(score: f64, sign: Option<f64>, tolerance: f64) -> Self {
        let Some(sign) = sign else {
            return if score.abs() > tolerance { Self::Changed } else { Self::Equal };
        };
        match score * sign {
            better if better > tolerance => Self::Improvement,
            better if better > tolerance / 2.0 => Self::MinorGain,
            better if better < -tolerance => Self::Regression,
            better if better < -tolerance / 2.0 => Self::MinorLoss,
            _ => Self::Equal,
        }
    }

    /// Whether it results from two valid numbers.
    pub fn is_compared(self) -> bool {
        !matches!(self, Self::Missing | Self::Invalid | Self::Incomparable)
    }

    /// The machine-readable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Improvement => "improvement",
            Self::MinorGain => "minor-gain",
            Self::Equal => "equal",
            Self::MinorLoss => "minor-loss",
            Self::Regression => "regression",
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::Incomparable => "incomparable",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The sign by which a score is multiplied so that positive is better; `None` if neither direction is better.
///
/// Less deviation is better for every metric. A difference of deviations is positive if it decreased, but a model's
/// score rises with its value, also for deviations.
pub(super) fn direction_sign(direction: Direction, statistic: Statistic, modelled: bool) -> Option<f64> {
    match (statistic, direction) {
        (Statistic::Stddev, _) => Some(if modelled { -1.0 } else { 1.0 }),
        (Statistic::Mean, Direction::Higher) => Some(1.0),
        (Statistic::Mean, Direction::Lower) => Some(-1.0),
        (Statistic::Mean, Direction::Neither) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_are_symmetric() {
        let of = |score| Status::of(score, Some(1.0), 5.0);
        let scores = [f64::INFINITY, 5.1, 5.0, 2.6, 2.5, 0.0, -2.5, -2.6, -5.0, -5.1];
        use Status::*;
        let expected =
            [Improvement, Improvement, MinorGain, MinorGain, Equal, Equal, Equal, MinorLoss, MinorLoss, Regression];
        assert_eq!(scores.map(of), expected);
    }

    #[test]
    fn the_direction_decides() {
        let of = |score, direction, statistic, modelled| {
            Status::of(score, direction_sign(direction, statistic, modelled), 5.0)
        };
        assert_eq!(of(6.0, Direction::Lower, Statistic::Mean, false), Status::Regression);
        assert_eq!(of(-6.0, Direction::Lower, Statistic::Mean, true), Status::Improvement);
        assert_eq!(of(-6.0, Direction::Neither, Statistic::Mean, false), Status::Changed);
        assert_eq!(of(4.0, Direction::Neither, Statistic::Mean, false), Status::Equal);
        assert_eq!(of(6.0, Direction::Lower, Statistic::Stddev, false), Status::Improvement);
        assert_eq!(of(6.0, Direction::Higher, Statistic::Stddev, true), Status::Regression);
    }
}
