//! Determines the final verdict on a check, and the method that decides it.

use wb_results::comparison::{
    CheckId, ComparisonMethod, FinalVerdict, IdFormat, NoiseModelUse, ParamDifference, Statistic, Status,
};

use crate::build::DEFINING_PARAMS;
use crate::direction::is_speed;
use crate::statistical::{self, ENOUGH_SAMPLES, Verdict};

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
        between_alternatives(decided, statistic == Statistic::Mean && is_speed(class) && !fails_more)
    } else {
        decided
    };
    CheckDecision { by, final_verdict, too_few_samples }
}

/// The verdict between alternatives; `is_speed` is whether a throughput or a latency is compared.
pub(super) fn between_alternatives(verdict: FinalVerdict, is_speed: bool) -> FinalVerdict {
    match (verdict, is_speed) {
        (FinalVerdict::Improved, true) => FinalVerdict::Faster,
        (FinalVerdict::Improved, false) => FinalVerdict::Better,
        (FinalVerdict::Regressed, true) => FinalVerdict::Slower,
        (FinalVerdict::Regressed, false) => FinalVerdict::Worse,
        (other, _) => other,
    }
}

/// The more precise verdict of a check that only the judged build has, `New` or `Invalid`, in place of `Missing`.
pub(super) fn or_judged_alone(verdict: FinalVerdict, judged_alone: Option<FinalVerdict>) -> FinalVerdict {
    judged_alone.filter(|_| verdict == FinalVerdict::Missing).unwrap_or(verdict)
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
        Self { final_verdict: or_judged_alone(self.final_verdict, judged_alone), ..self }
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
