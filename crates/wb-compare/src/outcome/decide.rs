//! Which method decides, and what that comes to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::told::Difference;
use crate::id::{Naming, Statistic};
use crate::source::{EMULATED, KEY};
use crate::statistical::{self, ENOUGH_SAMPLES, NoiseUse, Unit, Verdict};
use crate::tolerance::Status;

/// A way to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Differences in percent against a limit, as run-perf does.
    Tolerance,
    /// The ratio of medians and how sure it is.
    Statistical,
}

impl Method {
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
pub enum Decided {
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

impl Decided {
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
pub(super) struct Decision {
    pub(super) by: Method,
    pub(super) decided: Decided,
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
    naming: Naming,
    status: Status,
    found: Option<&statistical::Check>,
    requested: Option<Method>,
    differences: &[Difference],
) -> Decision {
    let by_statistics = match requested {
        Some(Method::Tolerance) => None,
        Some(Method::Statistical) => found,
        None => found.filter(|check| naming == Naming::Weighbridge || is_enough(check)),
    };
    let by = if by_statistics.is_some() { Method::Statistical } else { Method::Tolerance };
    let is_incomparable = differences.iter().any(|difference| difference.name == KEY || difference.name == EMULATED);
    let too_few_samples = requested.is_none()
        && !is_incomparable
        && status.is_compared()
        && by_statistics.is_some_and(|check| !is_enough(check));
    let decided = match (by_statistics, status) {
        _ if is_incomparable => Decided::Incomparable,
        _ if too_few_samples => Decided::Inconclusive,
        (Some(check), _) if statistic == Statistic::Mean => of_verdict(check.verdict),
        (Some(_), Status::Improvement | Status::Regression) => Decided::Differs,
        (_, status) => of_status(status),
    };
    Decision { by, decided, too_few_samples }
}

/// Whether both sides have samples enough for statistics. A model of noise was learnt from many samples, whatever the
/// sides have.
fn is_enough(check: &statistical::Check) -> bool {
    check.units.unit == Unit::Runs
        || check.units.src.min(check.units.dst) >= ENOUGH_SAMPLES
        || matches!(check.noise, Some(NoiseUse::Used { .. }))
}

fn of_verdict(verdict: Verdict) -> Decided {
    match verdict {
        Verdict::Improved => Decided::Gain,
        Verdict::Regressed => Decided::Loss,
        Verdict::Equivalent => Decided::Equal,
        Verdict::Differs => Decided::Differs,
        Verdict::Inconclusive => Decided::Inconclusive,
        Verdict::Invalid => Decided::Invalid,
        Verdict::Incomparable => Decided::Incomparable,
        Verdict::Missing => Decided::Missing,
    }
}

fn of_status(status: Status) -> Decided {
    match status {
        Status::Improvement => Decided::Gain,
        Status::MinorGain => Decided::MinorGain,
        Status::Equal => Decided::Equal,
        Status::MinorLoss => Decided::MinorLoss,
        Status::Regression => Decided::Loss,
        Status::Changed => Decided::Differs,
        Status::Missing => Decided::Missing,
        Status::Invalid => Decided::Invalid,
        Status::Incomparable => Decided::Incomparable,
    }
}
