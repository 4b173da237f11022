//! The summary of what the statistical method found of a check.

use wb_results::comparison::{
    AspectSummary, ConfidenceInterval, FailureSummary, FinalVerdict, NegligibleRatios, StatisticalSummary,
    ValueDifference,
};
use wb_stats::Interval;

use crate::build::{Build, Builds};
use crate::statistical::{self, AspectComparison, FailureComparison, Verdict};

/// `word` is the final verdict for a verdict of the method.
pub(super) fn summarize_statistics(
    comparison: &statistical::MetricComparison,
    builds: &Builds,
    word: impl Fn(Verdict) -> FinalVerdict,
) -> StatisticalSummary {
    let disturbed = |build: Option<&Build>| build.and_then(|build| build.disturbed(comparison.row));
    let aspect = |aspect: &AspectComparison| summarize_aspect(aspect, &word);
    let decisive = comparison.decisive().and_then(aspect);
    let has_ratio = comparison.aspects.iter().all(|aspect| aspect.base.is_none());
    let median_ratio = comparison.median_ratio.filter(|_| has_ratio);
    StatisticalSummary {
        verdict: word(comparison.verdict),
        aspect: decisive.as_ref().map(|aspect| aspect.aspect),
        ratio: decisive.as_ref().and_then(|aspect| aspect.ratio),
        value_difference: decisive.as_ref().and_then(|aspect| aspect.value_difference),
        interval: decisive.as_ref().and_then(|aspect| aspect.interval),
        runs_interval: decisive.as_ref().and_then(|aspect| aspect.runs_interval),
        p_value: comparison.p,
        aspects: comparison.aspects.iter().filter_map(aspect).collect(),
        median_ratio: median_ratio.map(|ratio| ratio.estimate),
        median_interval: median_ratio.and_then(|ratio| ratio.interval).map(ConfidenceInterval::from),
        counts: comparison.counts,
        failures: comparison.failures,
        failures_rose: comparison.failures_rose(),
        failure_rates: comparison.failure_rates.map(summarize_failures),
        significant_alone: comparison.significant_alone,
        may_be_worse: comparison.may_be_worse(),
        equal_if_independent: comparison.equal_if_independent,
        disturbed: [builds.list().first(), builds.list().last()].map(disturbed),
        threshold: comparison.threshold,
        negligible: Some(NegligibleRatios::new(comparison.threshold)),
        noise: comparison.noise.clone(),
        noise_source: comparison.source,
        run_noise: comparison.run_noise * 100.0,
        required_samples: comparison.required_samples,
    }
}

fn summarize_aspect(aspect: &AspectComparison, word: impl Fn(Verdict) -> FinalVerdict) -> Option<AspectSummary> {
    let of_ratio =
        |interval: Option<Interval>| interval.filter(|_| aspect.base.is_none()).map(ConfidenceInterval::from);
    aspect.ratio.is_finite().then(|| AspectSummary {
        aspect: aspect.aspect,
        ratio: Some(aspect.ratio).filter(|_| aspect.base.is_none()),
        value_difference: value_difference(aspect),
        interval: of_ratio(aspect.interval),
        widened_interval: of_ratio(aspect.widened_interval),
        runs_interval: of_ratio(aspect.runs_interval),
        p_by_samples: aspect.p_by_samples,
        p_by_runs: aspect.p_by_runs,
        certainty: aspect.certainty,
        alone: word(aspect.alone),
        seems_worse: aspect.seems_worse,
    })
}

/// `None` if the ratio is one.
fn value_difference(aspect: &AspectComparison) -> Option<ValueDifference> {
    let interval = |ratios: Option<Interval>| {
        let ratios = ratios?;
        let [low, high] = [ratios.low, ratios.high].map(|end| aspect.value_difference(end));
        Some(ConfidenceInterval { low: low?, high: high?, confidence: ratios.confidence })
    };
    Some(ValueDifference {
        estimate: aspect.value_difference(aspect.ratio)?,
        interval: interval(aspect.interval),
        widened_interval: interval(aspect.widened_interval),
        runs_interval: interval(aspect.runs_interval),
    })
}

fn summarize_failures(failures: FailureComparison) -> FailureSummary {
    let FailureComparison { difference, p_value, .. } = failures;
    FailureSummary { difference: difference.difference, interval: difference.interval.into(), p_value }
}
