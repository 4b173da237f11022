//! The status of a check by the tolerance method.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
