//! The final verdict on a check, whichever method decides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Status;

/// The final verdict on a check, from either method, in the words of every output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FinalVerdict {
    /// Better than in the first build.
    Improved,
    /// Better than the reference, of parts of one run: a throughput or a latency.
    Faster,
    /// Better than the reference, of parts of one run: any other quantity.
    Better,
    /// Better by more than half the tolerance, where tolerances decide.
    MinorGain,
    /// Within the threshold; where tolerances decide, within half the tolerance.
    Equivalent,
    /// Worse by more than half the tolerance, where tolerances decide.
    MinorLoss,
    /// Worse than in the first build.
    Regressed,
    /// Worse than the reference, of parts of one run: a throughput or a latency.
    Slower,
    /// Worse than the reference, of parts of one run: any other quantity.
    Worse,
    /// Different, and neither direction is better, or only a standard deviation differs.
    Differs,
    /// The samples differ, but no more than runs of one build may.
    Unconfirmed,
    /// No verdict yet.
    Inconclusive,
    /// Only the last build has it, with a valid value.
    New,
    /// The last build does not have it, or an error is why the first does not; of parts of one run, one of both does not.
    Missing,
    /// A side has no valid value: all of its attempts failed, or their values are invalid.
    Invalid,
    /// The sides have different definitions.
    Incomparable,
}

impl FinalVerdict {
    pub const ALL: [Self; 16] = [
        Self::Improved,
        Self::Faster,
        Self::Better,
        Self::MinorGain,
        Self::Equivalent,
        Self::MinorLoss,
        Self::Regressed,
        Self::Slower,
        Self::Worse,
        Self::Differs,
        Self::Unconfirmed,
        Self::Inconclusive,
        Self::New,
        Self::Missing,
        Self::Invalid,
        Self::Incomparable,
    ];

    pub fn is_better(self) -> bool {
        matches!(self, Self::Improved | Self::Faster | Self::Better)
    }

    pub fn is_worse(self) -> bool {
        matches!(self, Self::Regressed | Self::Slower | Self::Worse)
    }

    pub fn is_change(self) -> bool {
        self.is_better() || self.is_worse() || self == Self::Differs
    }

    /// Whether a check can have it. Builds follow each other; parts of one run are `alternatives`, which neither
    /// improve nor regress.
    pub fn is_possible(self, alternatives: bool) -> bool {
        match self {
            Self::Improved | Self::Regressed | Self::New => !alternatives,
            Self::Faster | Self::Better | Self::Slower | Self::Worse => alternatives,
            _ => true,
        }
    }

    /// Whether it is that of a comparison, even an undecided one, rather than a reason why there is none.
    pub fn is_compared(self) -> bool {
        !matches!(self, Self::New | Self::Missing | Self::Invalid | Self::Incomparable)
    }

    /// Whether it counts against a build: worse, or not compared although the first build has it.
    pub fn is_failure(self) -> bool {
        self.is_worse() || !self.is_compared() && self != Self::New
    }

    /// Whether it is more than a small difference or none.
    pub fn is_notable(self) -> bool {
        !matches!(self, Self::MinorGain | Self::Equivalent | Self::MinorLoss)
    }

    /// The word in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Faster => "faster",
            Self::Better => "better",
            Self::MinorGain => "minor-gain",
            Self::Equivalent => "equivalent",
            Self::MinorLoss => "minor-loss",
            Self::Regressed => "regressed",
            Self::Slower => "slower",
            Self::Worse => "worse",
            Self::Differs => "differs",
            Self::Unconfirmed => "unconfirmed",
            Self::Inconclusive => "inconclusive",
            Self::New => "new",
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::Incomparable => "incomparable",
        }
    }
}

impl From<Status> for FinalVerdict {
    fn from(status: Status) -> Self {
        match status {
            Status::Improved => Self::Improved,
            Status::MinorGain => Self::MinorGain,
            Status::Equivalent => Self::Equivalent,
            Status::MinorLoss => Self::MinorLoss,
            Status::Regressed => Self::Regressed,
            Status::Differs => Self::Differs,
            Status::Missing => Self::Missing,
            Status::Invalid => Self::Invalid,
            Status::Incomparable => Self::Incomparable,
        }
    }
}
