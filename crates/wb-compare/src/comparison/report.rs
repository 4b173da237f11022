//! Components of a comparison result, derived from the types of the methods.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::System;

use super::BuildSummary;
use crate::build::{Build, Builds, MetricIndex, Run};
use crate::environment::Environments;
use crate::run_perf::tolerance::score::ScorePart;
use crate::statistical::{self, NoiseModelUse, ObservationKind, RequiredSamples, Verdict};

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
    /// The verdict from the ratio and its uncertainty.
    pub verdict: Verdict,
    /// The ratio of the last build to the first.
    pub ratio: Option<f64>,
    /// The confidence interval of the ratio.
    pub interval: Option<ConfidenceInterval>,
    /// The p-value, adjusted for the family.
    pub p_value: Option<f64>,
    /// The number of values on each side.
    pub n: [usize; 2],
    /// The kind of these values.
    pub observations: ObservationKind,
    /// The number of each side's samples that were disturbed from outside the workload; `None` if its results do not
    /// record it.
    pub disturbed: [Option<usize>; 2],
    /// The smallest relevant difference, in percent.
    pub threshold: f64,
    /// Whether and how a noise model was used; `None` without models.
    pub noise: Option<NoiseModelUse>,
    /// The number of values required for a verdict.
    pub required_samples: Option<RequiredSamples>,
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

impl From<wb_stats::Interval> for ConfidenceInterval {
    fn from(interval: wb_stats::Interval) -> Self {
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
    pub(super) fn of(build: &Build) -> Self {
        Self {
            name: build.name.clone(),
            runs: build.runs.iter().map(RunSummary::of).collect(),
            errors: build.errors().map(|error| (error.location.clone(), error.message.clone())).collect(),
            samples: build.sample_counts(),
        }
    }
}

impl RunSummary {
    pub(super) fn of(run: &Run) -> Self {
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
    pub(super) fn of(comparison: &statistical::MetricComparison, builds: &Builds) -> Self {
        let disturbed = |build: Option<&Build>| build.and_then(|build| build.disturbed(comparison.row));
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let interval = comparison.effect.and_then(|effect| effect.interval);
        Self {
            verdict: comparison.verdict,
            ratio: comparison.effect.and_then(|effect| finite(effect.estimate)),
            interval: interval.map(ConfidenceInterval::from),
            p_value: comparison.p,
            n: [comparison.units.reference, comparison.units.judged],
            observations: comparison.units.unit,
            disturbed: [builds.list().first(), builds.list().last()].map(disturbed),
            threshold: comparison.threshold,
            noise: comparison.noise.clone(),
            required_samples: comparison.required_samples,
        }
    }
}

/// A part's name, difference and weight.
pub(super) fn summarize_part(part: &ScorePart) -> (String, Option<f64>, f64) {
    (part.term.to_string(), Some(part.difference).filter(|difference| difference.is_finite()), part.weight)
}

/// The parameters in which the first and the last build differ.
pub(super) fn last_param_differences(builds: &Builds, row: MetricIndex) -> Vec<ParamDifference> {
    let [reference, .., judged] = builds.list() else { return Vec::new() };
    param_differences(builds, [reference, judged], row)
}

/// The parameters in which two builds differ.
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
    let differing = names.into_iter().filter(|name| reference.get(name) != judged.get(name));
    let difference = |name: &str| ParamDifference {
        name: name.to_owned(),
        before: reference.get(name).map(|value| (*value).to_owned()),
        after: judged.get(name).map(|value| (*value).to_owned()),
    };
    differing.map(difference).collect()
}
