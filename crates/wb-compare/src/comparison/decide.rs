//! Determines the final verdict on a check, and the method that decides it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ParamDifference;
use crate::build::DEFINING_PARAMS;
use crate::direction::is_speed;
use crate::id::{CheckId, IdFormat, Statistic};
use crate::run_perf::tolerance::Status;
use crate::sequential_test::VariantVerdict;
use crate::statistical::{self, ENOUGH_SAMPLES, NoiseModelUse, Verdict};

/// A comparison method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonMethod {
    /// Differences in percent compared with a limit, as in run-perf.
    Tolerance,
    /// Ratios and their uncertainty.
    Statistical,
}

impl ComparisonMethod {
    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tolerance => "tolerance",
            Self::Statistical => "statistical",
        }
    }
}

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

    /// The same between alternatives; `is_speed` is whether a throughput or a latency is compared.
    pub(super) fn between_alternatives(self, is_speed: bool) -> Self {
        match (self, is_speed) {
            (Self::Improved, true) => Self::Faster,
            (Self::Improved, false) => Self::Better,
            (Self::Regressed, true) => Self::Slower,
            (Self::Regressed, false) => Self::Worse,
            (other, _) => other,
        }
    }

    /// The more precise verdict of a check that only the judged build has, `New` or `Invalid`, in place of `Missing`.
    pub(super) fn or_judged_alone(self, judged_alone: Option<Self>) -> Self {
        judged_alone.filter(|_| self == Self::Missing).unwrap_or(self)
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CheckDecision {
    pub(super) by: ComparisonMethod,
    pub(super) final_verdict: FinalVerdict,
    /// Inconclusive whatever the values: a side has under [`ENOUGH_SAMPLES`] or, with requested statistics, both have a
    /// single one.
    pub(super) too_few_samples: bool,
}

/// Decides a check by the `requested` method, or else by the one that its data permit: statistics on recorded and
/// imported runs, which are inconclusive with too few samples; tolerances on folders of run-perf, unless a noise model
/// applies. The number of samples never selects the method: more evidence would then decide less.
///
/// Attempts that fail significantly more often decide by either method: no tolerance is about them. Standard deviations
/// have no statistical test: if statistics decide on the mean, one beyond its tolerance is reported as different, and
/// decides nothing. `has_zero_mean` is whether the mean is known on both sides, and zero on one.
pub(super) fn decide(
    CheckId { statistic, id_format, class, .. }: CheckId<'_>,
    alternatives: bool,
    status: Status,
    has_zero_mean: bool,
    statistical_check: Option<&statistical::MetricComparison>,
    requested: Option<ComparisonMethod>,
    differences: &[ParamDifference],
) -> CheckDecision {
    let fails_more =
        statistic == Statistic::Mean && statistical_check.is_some_and(statistical::MetricComparison::failures_rose);
    let by_statistics = match requested {
        _ if fails_more => statistical_check,
        Some(ComparisonMethod::Tolerance) => None,
        Some(ComparisonMethod::Statistical) => statistical_check,
        None => statistical_check.filter(|check| id_format == IdFormat::Weighbridge || uses_noise_model(check)),
    };
    let by = if by_statistics.is_some() { ComparisonMethod::Statistical } else { ComparisonMethod::Tolerance };
    let is_incomparable = differences.iter().any(|difference| DEFINING_PARAMS.contains(&difference.name.as_str()));
    let too_few_samples = !is_incomparable
        && status.is_compared()
        // Attempts that failed are no samples, and make them fewer.
        && !statistical_check.is_some_and(statistical::MetricComparison::failures_rose)
        && by_statistics.is_some_and(|check| match requested {
            None => !has_enough_samples(check),
            Some(_) => lacks_noise_estimate(check),
        });
    let decided = match (by_statistics, status) {
        _ if is_incomparable => FinalVerdict::Incomparable,
        _ if too_few_samples => FinalVerdict::Inconclusive,
        (Some(check), _) if statistic == Statistic::Mean => check.verdict.into(),
        // What has no valid mean has no standard deviation either.
        (Some(check), Status::Missing) if check.verdict == Verdict::Invalid => FinalVerdict::Invalid,
        (Some(check), Status::Missing) if check.verdict != Verdict::Missing => FinalVerdict::Inconclusive,
        // A single sample has no standard deviation, and a mean of zero none in percent of it.
        (None, Status::Missing)
            if statistic == Statistic::Stddev && (has_zero_mean || is_single_sample(statistical_check)) =>
        {
            FinalVerdict::Inconclusive
        }
        (Some(_), Status::Improved | Status::Regressed) => FinalVerdict::Differs,
        (_, status) => status.into(),
    };
    let final_verdict = if alternatives {
        // What fails more often is not slower.
        decided.between_alternatives(statistic == Statistic::Mean && is_speed(class) && !fails_more)
    } else {
        decided
    };
    CheckDecision { by, final_verdict, too_few_samples }
}

/// With several runs, their own variation counts; a noise model was learnt from many samples.
fn has_enough_samples(check: &statistical::MetricComparison) -> bool {
    check.counts.has_several_runs() || check.counts.min_samples() >= ENOUGH_SAMPLES || uses_noise_model(check)
}

/// Whether the noise of the samples is unknown: each side has a single one, and no noise is assumed.
fn lacks_noise_estimate(check: &statistical::MetricComparison) -> bool {
    check.counts.samples == [1, 1] && check.source.is_none() && !uses_noise_model(check)
}

/// Whether both sides have samples, and at least one of them exactly one.
fn is_single_sample(check: Option<&statistical::MetricComparison>) -> bool {
    check.is_some_and(|check| check.verdict != Verdict::Missing && check.counts.min_samples() == 1)
}

/// Whether a noise model applies: to give one is to request statistics.
fn uses_noise_model(check: &statistical::MetricComparison) -> bool {
    matches!(check.noise, Some(NoiseModelUse::Applied { .. }))
}

impl CheckDecision {
    pub(super) fn or_judged_alone(self, judged_alone: Option<FinalVerdict>) -> Self {
        Self { final_verdict: self.final_verdict.or_judged_alone(judged_alone), ..self }
    }
}

impl From<Verdict> for FinalVerdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Improved => Self::Improved,
            Verdict::Regressed => Self::Regressed,
            Verdict::Equivalent => Self::Equivalent,
            Verdict::Differs => Self::Differs,
            Verdict::Unconfirmed => Self::Unconfirmed,
            Verdict::Inconclusive => Self::Inconclusive,
            Verdict::Invalid => Self::Invalid,
            Verdict::Incomparable => Self::Incomparable,
            Verdict::Missing => Self::Missing,
        }
    }
}

impl From<VariantVerdict> for FinalVerdict {
    fn from(verdict: VariantVerdict) -> Self {
        match verdict {
            VariantVerdict::Faster => Self::Faster,
            VariantVerdict::Better => Self::Better,
            VariantVerdict::Slower => Self::Slower,
            VariantVerdict::Worse => Self::Worse,
            VariantVerdict::Differs => Self::Differs,
            VariantVerdict::Equivalent => Self::Equivalent,
            VariantVerdict::Inconclusive => Self::Inconclusive,
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
