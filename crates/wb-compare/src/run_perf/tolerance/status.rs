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
    Improved,
    /// Better by more than half the tolerance.
    MinorGain,
    /// Within half the tolerance; without a better direction, within the tolerance.
    Equivalent,
    /// Worse by more than half the tolerance.
    MinorLoss,
    /// Worse by more than the tolerance.
    Regressed,
    /// Beyond the tolerance, if neither direction is better.
    Differs,
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
        Self::Improved,
        Self::MinorGain,
        Self::Equivalent,
        Self::MinorLoss,
        Self::Regressed,
        Self::Differs,
        Self::Missing,
        Self::Invalid,
        Self::Incomparable,
    ];

    /// `sign` is that of [`direction_sign`].
    pub(super) fn new(score: f64, sign: Option<f64>, tolerance: f64) -> Self {
        let Some(sign) = sign else {
            return if score.abs() > tolerance { Self::Differs } else { Self::Equivalent };
        };
        match score * sign {
            better if better > tolerance => Self::Improved,
            better if better > tolerance / 2.0 => Self::MinorGain,
            better if better < -tolerance => Self::Regressed,
            better if better < -tolerance / 2.0 => Self::MinorLoss,
            _ => Self::Equivalent,
        }
    }

    /// Whether it results from two valid numbers.
    pub fn is_compared(self) -> bool {
        !matches!(self, Self::Missing | Self::Invalid | Self::Incomparable)
    }

    /// The machine-readable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::MinorGain => "minor-gain",
            Self::Equivalent => "equivalent",
            Self::MinorLoss => "minor-loss",
            Self::Regressed => "regressed",
            Self::Differs => "differs",
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

/// The factor that makes a positive score better; `None` if neither direction is. Less deviation is better for every
/// metric: a difference of deviations is positive if they decreased, but the score of a model rises with its value,
/// also for deviations.
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
        let of = |score| Status::new(score, Some(1.0), 5.0);
        let scores = [f64::INFINITY, 5.1, 5.0, 2.6, 2.5, 0.0, -2.5, -2.6, -5.0, -5.1];
        use Status::*;
        let expected = [
            Improved, Improved, MinorGain, MinorGain, Equivalent, Equivalent, Equivalent, MinorLoss, MinorLoss,
            Regressed,
        ];
        assert_eq!(scores.map(of), expected);
    }

    #[test]
    fn the_direction_decides() {
        let of = |score, direction, statistic, modelled| {
            Status::new(score, direction_sign(direction, statistic, modelled), 5.0)
        };
        assert_eq!(of(6.0, Direction::Lower, Statistic::Mean, false), Status::Regressed);
        assert_eq!(of(-6.0, Direction::Lower, Statistic::Mean, true), Status::Improved);
        assert_eq!(of(-6.0, Direction::Neither, Statistic::Mean, false), Status::Differs);
        assert_eq!(of(4.0, Direction::Neither, Statistic::Mean, false), Status::Equivalent);
        assert_eq!(of(6.0, Direction::Lower, Statistic::Stddev, false), Status::Improved);
        assert_eq!(of(6.0, Direction::Higher, Statistic::Stddev, true), Status::Regressed);
    }
}
