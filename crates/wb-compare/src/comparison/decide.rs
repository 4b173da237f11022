//! Which method decides, and what that comes to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ParamDifference;
use crate::id::{IdFormat, Statistic};
use crate::source::{DEFINITION_KEY, EMULATED};
use crate::statistical::{self, ENOUGH_SAMPLES, NoiseUse, ObservationKind, Verdict};
use crate::tolerance::Status;

/// A way to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonMethod {
    /// Differences in percent against a limit, as run-perf does.
    Tolerance,
    /// The ratio of medians and how sure it is.
    Statistical,
}

impl ComparisonMethod {
    /// In a word, as files have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tolerance => "tolerance",
            Self::Statistical => "statistical",
        }
    }
}

/// What is said of a check in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FinalVerdict {
    /// Better.
    Gain,
    /// Better, within the tolerance.
    MinorGain,
    /// As it was.
    Equal,
    /// Worse, within the tolerance.
    MinorLoss,
    /// Worse.
    Loss,
    /// Different; whether that is normal, or good, is not known.
    Differs,
    /// Nothing can be said yet.
    Inconclusive,
    /// A side does not have it.
    Missing,
    /// A side has it, and no number that counts.
    Invalid,
    /// It is defined otherwise on both sides.
    Incomparable,
}

impl FinalVerdict {
    /// Every one, from best to worst.
    pub const ALL: [Self; 10] = [
        Self::Gain,
        Self::MinorGain,
        Self::Equal,
        Self::MinorLoss,
        Self::Loss,
        Self::Differs,
        Self::Inconclusive,
        Self::Missing,
        Self::Invalid,
        Self::Incomparable,
    ];

    /// Whether two numbers stand behind it.
    pub fn is_compared(self) -> bool {
        !matches!(self, Self::Missing | Self::Invalid | Self::Incomparable)
    }

    /// Whether it speaks against a build: worse, or not compared.
    pub fn is_failure(self) -> bool {
        self == Self::Loss || !self.is_compared()
    }

    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gain => "gain",
            Self::MinorGain => "minor gain",
            Self::Equal => "equal",
            Self::MinorLoss => "minor loss",
            Self::Loss => "loss",
            Self::Differs => "differs",
            Self::Inconclusive => "inconclusive",
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::Incomparable => "incomparable",
        }
    }
}

/// What a check comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CheckDecision {
    pub(super) by: ComparisonMethod,
    pub(super) final_verdict: FinalVerdict,
    /// Whether it is inconclusive because a side has fewer than [`ENOUGH_SAMPLES`], whatever its figures.
    pub(super) too_few_samples: bool,
}

/// What a check comes to, by the `requested` method or else by the one that its evidence permits.
///
/// Without a requested method statistics decide on own and imported runs, which are inconclusive with too few samples:
/// less evidence must not decide more. Folders of run-perf, whose users compare few samples, are then left to
/// tolerances.
///
/// Standard deviations have no test of their own: where statistics decide on the mean, one that is beyond its tolerance
/// differs, and decides nothing.
pub(super) fn decide(
    statistic: Statistic,
    naming: IdFormat,
    status: Status,
    found: Option<&statistical::MetricComparison>,
    requested: Option<ComparisonMethod>,
    differences: &[ParamDifference],
) -> CheckDecision {
    let by_statistics = match requested {
        Some(ComparisonMethod::Tolerance) => None,
        Some(ComparisonMethod::Statistical) => found,
        None => found.filter(|check| naming == IdFormat::Weighbridge || has_enough_samples(check)),
    };
    let by = if by_statistics.is_some() { ComparisonMethod::Statistical } else { ComparisonMethod::Tolerance };
    let is_incomparable =
        differences.iter().any(|difference| difference.name == DEFINITION_KEY || difference.name == EMULATED);
    let too_few_samples = requested.is_none()
        && !is_incomparable
        && status.is_compared()
        && by_statistics.is_some_and(|check| !has_enough_samples(check));
    let decided = match (by_statistics, status) {
        _ if is_incomparable => FinalVerdict::Incomparable,
        _ if too_few_samples => FinalVerdict::Inconclusive,
        (Some(check), _) if statistic == Statistic::Mean => from_verdict(check.verdict),
        (Some(_), Status::Improvement | Status::Regression) => FinalVerdict::Differs,
        (_, status) => from_status(status),
    };
    CheckDecision { by, final_verdict: decided, too_few_samples }
}

/// Whether both sides have samples enough for statistics. A model of noise was learnt from many samples, whatever the
/// sides have.
fn has_enough_samples(check: &statistical::MetricComparison) -> bool {
    check.units.unit == ObservationKind::Runs
        || check.units.src.min(check.units.dst) >= ENOUGH_SAMPLES
        || matches!(check.noise, Some(NoiseUse::Applied { .. }))
}

fn from_verdict(verdict: Verdict) -> FinalVerdict {
    match verdict {
        Verdict::Improved => FinalVerdict::Gain,
        Verdict::Regressed => FinalVerdict::Loss,
        Verdict::Equivalent => FinalVerdict::Equal,
        Verdict::Differs => FinalVerdict::Differs,
        Verdict::Inconclusive => FinalVerdict::Inconclusive,
        Verdict::Invalid => FinalVerdict::Invalid,
        Verdict::Incomparable => FinalVerdict::Incomparable,
        Verdict::Missing => FinalVerdict::Missing,
    }
}

fn from_status(status: Status) -> FinalVerdict {
    match status {
        Status::Improvement => FinalVerdict::Gain,
        Status::MinorGain => FinalVerdict::MinorGain,
        Status::Equal => FinalVerdict::Equal,
        Status::MinorLoss => FinalVerdict::MinorLoss,
        Status::Regression => FinalVerdict::Loss,
        Status::Changed => FinalVerdict::Differs,
        Status::Missing => FinalVerdict::Missing,
        Status::Invalid => FinalVerdict::Invalid,
        Status::Incomparable => FinalVerdict::Incomparable,
    }
}
