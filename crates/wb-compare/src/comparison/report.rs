//! Components of a comparison result, derived from the types of the methods.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::System;
use wb_stats::{Interval, NoiseSource};

use super::{BuildSummary, FinalVerdict};
use crate::build::{AttemptCounts, Build, Builds, MetricIndex, Run};
use crate::environment::Environments;
use crate::run_perf::tolerance::score::ScorePart;
use crate::statistical::threshold::NegligibleRatios;
use crate::statistical::{
    self, Aspect, AspectComparison, Certainty, FailureComparison, NoiseModelUse, ObservationCounts, RequiredSamples,
    TestPValues, Verdict,
};

/// The summary of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Its folder.
    pub path: String,
    /// The recorded metadata by name: the measured build, its URL, the machine, distributions, version, command and
    /// other entries.
    pub metadata: BTreeMap<String, String>,
    /// The environments of the machines when the samples were taken.
    pub environment: Environments,
    /// The hardware and software of each machine.
    #[serde(default)]
    pub systems: Vec<System>,
}

/// The result of the statistical method for a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatisticalSummary {
    /// The verdict from the aspects and their uncertainty.
    pub verdict: FinalVerdict,
    /// The aspect that the verdict is based on; `None` if no ratio can be computed.
    pub aspect: Option<Aspect>,
    /// The ratio of the last build to the first, of that aspect; `None` with its intervals if a sample is below zero.
    pub ratio: Option<f64>,
    /// The difference of values instead of a ratio.
    #[serde(default)]
    pub value_difference: Option<ValueDifference>,
    /// The confidence interval of the ratio, as if runs of one build did not differ.
    pub interval: Option<ConfidenceInterval>,
    /// The confidence interval of the ratio with the noise between runs.
    #[serde(default)]
    pub runs_interval: Option<ConfidenceInterval>,
    /// The p-value with the noise between runs, adjusted for the family.
    pub p_value: Option<f64>,
    /// Everything that was compared, beginning with the shift.
    #[serde(default)]
    pub aspects: Vec<AspectSummary>,
    /// The ratio of the medians, which decides nothing.
    #[serde(default)]
    pub median_ratio: Option<f64>,
    /// Its confidence interval.
    #[serde(default)]
    pub median_interval: Option<ConfidenceInterval>,
    /// The numbers of samples and runs.
    #[serde(flatten)]
    pub counts: ObservationCounts,
    /// The failed attempts of the cell on each side.
    #[serde(default)]
    pub failures: [AttemptCounts; 2],
    /// Whether an aspect is worse, at least by the samples.
    #[serde(default)]
    pub may_be_worse: bool,
    /// Whether the sides would be equivalent if samples did not depend on those before them, and are inconclusive.
    #[serde(default)]
    pub equal_if_independent: bool,
    /// Whether attempts fail significantly more often in the last build.
    #[serde(default)]
    pub failures_rose: bool,
    /// The comparison of the shares of attempts that failed; `None` if none did, or a side does not record attempts.
    #[serde(default)]
    pub failure_rates: Option<FailureSummary>,
    /// Whether the check is unconfirmed, and would be confirmed if nothing else were compared.
    #[serde(default)]
    pub significant_alone: bool,
    /// The number of each side's samples that were disturbed from outside the workload; `None` if its results do not
    /// record it.
    pub disturbed: [Option<usize>; 2],
    /// The smallest relevant difference upwards, in percent.
    pub threshold: f64,
    /// The ratios that do not matter by this threshold, both ends included: for 5 % from 1/1.05 to 1.05, which is −4.76 % to
    /// +5 %.
    #[serde(default)]
    pub negligible: Option<NegligibleRatios>,
    /// Whether and how a noise model was used; `None` without models.
    pub noise: Option<NoiseModelUse>,
    /// Where the noise between runs is from, without a noise model.
    #[serde(default)]
    pub noise_source: Option<NoiseSource>,
    /// How much runs of one build are assumed to differ, in percent.
    #[serde(default)]
    pub run_noise: f64,
    /// The number of values required for a verdict.
    pub required_samples: Option<RequiredSamples>,
}

/// The comparison of one aspect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AspectSummary {
    /// The aspect.
    pub aspect: Aspect,
    /// The ratio of the last build to the first; `None` with its intervals if a sample is below zero.
    pub ratio: Option<f64>,
    /// The difference of values instead of a ratio.
    #[serde(default)]
    pub value_difference: Option<ValueDifference>,
    /// The confidence interval of the ratio, as if runs of one build did not differ.
    pub interval: Option<ConfidenceInterval>,
    /// The same, widened by the dependence of samples on those before them: equality needs this one.
    #[serde(default)]
    pub widened_interval: Option<ConfidenceInterval>,
    /// The confidence interval of the ratio with the noise between runs.
    pub runs_interval: Option<ConfidenceInterval>,
    /// The p-value by the samples alone, before and after each correction; `None` where a noise model decides on fewer than 6
    /// samples a side, which have no test of their own.
    pub p_by_samples: Option<TestPValues>,
    /// The p-value with the noise between runs, before and after each correction; never below the one by the samples.
    pub p_by_runs: TestPValues,
    /// How certain it is that the aspect differs.
    pub certainty: Certainty,
    /// The verdict on this aspect alone, as if runs of one build did not differ.
    pub alone: FinalVerdict,
    /// Whether its estimate is worse by more than the threshold, however certain that is: beside it no gain is confirmed.
    #[serde(default)]
    pub seems_worse: bool,
}

/// The difference of the last build from the first in the unit of their values, where a sample is below zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueDifference {
    /// The estimate.
    pub estimate: f64,
    /// Its confidence interval, as if runs of one build did not differ.
    pub interval: Option<ConfidenceInterval>,
    /// The same, widened by the dependence of samples on those before them.
    pub widened_interval: Option<ConfidenceInterval>,
    /// Its confidence interval with the noise between runs.
    pub runs_interval: Option<ConfidenceInterval>,
}

impl ValueDifference {
    /// `None` if the ratio is one.
    fn new(aspect: &AspectComparison) -> Option<Self> {
        let interval = |ratios: Option<Interval>| {
            let ratios = ratios?;
            let [low, high] = [ratios.low, ratios.high].map(|end| aspect.value_difference(end));
            Some(ConfidenceInterval { low: low?, high: high?, confidence: ratios.confidence })
        };
        Some(Self {
            estimate: aspect.value_difference(aspect.ratio)?,
            interval: interval(aspect.interval),
            widened_interval: interval(aspect.widened_interval),
            runs_interval: interval(aspect.runs_interval),
        })
    }
}

/// The comparison of the shares of attempts that failed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureSummary {
    /// The share in the last build minus that in the first.
    pub difference: f64,
    /// Its confidence interval.
    pub interval: ConfidenceInterval,
    /// The p-value (Fisher's exact test), before and after all corrections.
    pub p_value: TestPValues,
}

impl FailureSummary {
    fn new(failures: FailureComparison) -> Self {
        let FailureComparison { difference, p_value, .. } = failures;
        Self { difference: difference.difference, interval: difference.interval.into(), p_value }
    }
}

impl AspectSummary {
    fn new(aspect: &AspectComparison, word: impl Fn(Verdict) -> FinalVerdict) -> Option<Self> {
        let of_ratio =
            |interval: Option<Interval>| interval.filter(|_| aspect.base.is_none()).map(ConfidenceInterval::from);
        aspect.ratio.is_finite().then(|| Self {
            aspect: aspect.aspect,
            ratio: Some(aspect.ratio).filter(|_| aspect.base.is_none()),
            value_difference: ValueDifference::new(aspect),
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
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfidenceInterval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The confidence level.
    pub confidence: f64,
}

impl From<Interval> for ConfidenceInterval {
    fn from(interval: Interval) -> Self {
        Self { low: interval.low, high: interval.high, confidence: interval.confidence }
    }
}

/// A parameter that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ParamDifference {
    /// The parameter.
    pub name: String,
    /// The value in the first build; `None` if it has no such parameter.
    pub before: Option<String>,
    /// The value in the last build.
    pub after: Option<String>,
}

impl BuildSummary {
    pub(super) fn new(build: &Build) -> Self {
        Self {
            name: build.name.clone(),
            runs: build.runs.iter().map(RunSummary::new).collect(),
            errors: build.errors().map(|error| (error.location.clone(), error.message.clone())).collect(),
            samples: build.sample_counts(),
        }
    }
}

impl RunSummary {
    pub(super) fn new(run: &Run) -> Self {
        let metadata = &run.metadata;
        let properties = [
            ("build", &metadata.build),
            ("url", &metadata.url),
            ("machine", &metadata.machine),
            ("machine url", &metadata.machine_url),
            ("distro", &metadata.distro),
            ("guest distro", &metadata.guest_distro),
            ("version", &metadata.version),
            ("command", &metadata.command),
        ];
        let properties = properties.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        Self {
            path: run.path.display().to_string(),
            metadata: metadata.others.clone().into_iter().chain(properties).collect(),
            environment: metadata.environment.clone(),
            systems: metadata.systems.clone(),
        }
    }
}

impl StatisticalSummary {
    /// `word` is the final verdict for a verdict of the method.
    pub(super) fn new(
        comparison: &statistical::MetricComparison,
        builds: &Builds,
        word: impl Fn(Verdict) -> FinalVerdict,
    ) -> Self {
        let disturbed = |build: Option<&Build>| build.and_then(|build| build.disturbed(comparison.row));
        let aspect = |aspect: &AspectComparison| AspectSummary::new(aspect, &word);
        let decisive = comparison.decisive().and_then(aspect);
        let has_ratio = comparison.aspects.iter().all(|aspect| aspect.base.is_none());
        let median_ratio = comparison.median_ratio.filter(|_| has_ratio);
        Self {
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
            failure_rates: comparison.failure_rates.map(FailureSummary::new),
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

    /// The aspect that the verdict is based on.
    pub fn decisive_aspect(&self) -> Option<&AspectSummary> {
        self.aspects.iter().find(|aspect| Some(aspect.aspect) == self.aspect)
    }
}

pub(super) fn summarize_part(part: &ScorePart) -> (String, Option<f64>, f64) {
    (part.term.to_string(), Some(part.difference).filter(|difference| difference.is_finite()), part.weight)
}

pub(super) fn last_param_differences(builds: &Builds, row: MetricIndex) -> Vec<ParamDifference> {
    let [reference, .., judged] = builds.list() else { return Vec::new() };
    param_differences(builds, [reference, judged], row)
}

/// The runs of the first and of the last build without a metric that others of the build have.
pub(super) fn last_lacking(builds: &Builds, row: MetricIndex) -> [Vec<String>; 2] {
    let [reference, .., judged] = builds.list() else { return Default::default() };
    [reference, judged].map(|build| build.lacking(row).into_iter().map(|run| run.display().to_string()).collect())
}

/// Of the first build and of the last.
pub(super) fn last_findings(builds: &Builds, row: MetricIndex) -> [Vec<String>; 2] {
    let [reference, .., judged] = builds.list() else { return Default::default() };
    [reference, judged].map(|build| builds.findings(build, row).into_iter().map(str::to_owned).collect())
}

/// Within one run, the cell that a metric's cell is compared with, if that is another one.
pub(super) fn reference_cell(builds: &Builds, row: MetricIndex) -> Option<String> {
    let judged = builds.cell(row);
    let reference = builds.within_run()?.counterpart(judged).filter(|reference| *reference != judged)?;
    Some(builds.cell_name(reference))
}

pub(super) fn param_differences(
    builds: &Builds,
    [reference, judged]: [&Build; 2],
    row: MetricIndex,
) -> Vec<ParamDifference> {
    let (Some(reference), Some(judged)) = (reference.readings(row).next(), judged.readings(row).next()) else {
        return Vec::new();
    };
    if reference.params == judged.params {
        return Vec::new();
    }
    let all = |id| builds.params(id).collect::<BTreeMap<&str, &str>>();
    let (reference, judged) = (all(reference.params), all(judged.params));
    let names: std::collections::BTreeSet<&str> = reference.keys().chain(judged.keys()).copied().collect();
    let is_different = |name: &&str| reference.get(name) != judged.get(name) && !builds.is_ignored(row, name);
    let differing = names.into_iter().filter(is_different);
    let difference = |name: &str| ParamDifference {
        name: name.to_owned(),
        before: reference.get(name).map(|value| (*value).to_owned()),
        after: judged.get(name).map(|value| (*value).to_owned()),
    };
    differing.map(difference).collect()
}
