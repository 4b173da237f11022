//! The parts of an outcome, from the types of the methods.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::System;

use super::BuildSummary;
use crate::build::{Build, Builds, MetricIndex, Run};
use crate::environment::Environments;
use crate::statistical::{self, NoiseUse, ObservationKind, RequiredSamples, Verdict};
use crate::tolerance::score::ScorePart;

/// What was said of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Its folder.
    pub path: String,
    /// The build that was measured, where it is seen, the machine, distributions, version and command, by name; those
    /// that were said.
    pub metadata: BTreeMap<String, String>,
    /// What the machines were like, in the entry in which the samples were taken.
    pub environment: Environments,
    /// The hardware and software of each machine.
    #[serde(default)]
    pub systems: Vec<System>,
}

/// What the method of statistics says of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatisticalSummary {
    /// What follows from the ratio and how sure it is.
    pub verdict: Verdict,
    /// The last build's over the first's.
    pub ratio: Option<f64>,
    /// Where the ratio lies.
    pub interval: Option<ConfidenceInterval>,
    /// The probability of so large a difference where there is none, adjusted for the family.
    pub p_value: Option<f64>,
    /// How many values each side has.
    pub n: [usize; 2],
    /// What they are.
    pub observations: ObservationKind,
    /// How many of each side's samples something outside the workload disturbed; none where its results do not record
    /// that.
    pub disturbed: [Option<usize>; 2],
    /// How large a difference matters, in percent.
    pub threshold: f64,
    /// What became of the models of noise; none without any.
    pub noise: Option<NoiseUse>,
    /// What would decide it.
    pub required_samples: Option<RequiredSamples>,
}

/// An interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfidenceInterval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The confidence that it reaches.
    pub confidence: f64,
}

impl From<wb_stats::Interval> for ConfidenceInterval {
    fn from(interval: wb_stats::Interval) -> Self {
        Self { low: interval.low, high: interval.high, confidence: interval.confidence }
    }
}

/// A parameter in which both sides differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ParamDifference {
    /// The parameter.
    pub name: String,
    /// In the first build; none where it has no such parameter.
    pub before: Option<String>,
    /// In the last build.
    pub after: Option<String>,
}

impl BuildSummary {
    pub(super) fn of(build: &Build) -> Self {
        Self {
            name: build.name.clone(),
            runs: build.runs.iter().map(RunSummary::of).collect(),
            errors: build.errors().map(|error| (error.place.clone(), error.text.clone())).collect(),
            samples: build.sample_counts(),
        }
    }
}

impl RunSummary {
    pub(super) fn of(run: &Run) -> Self {
        let said = &run.metadata;
        let named = [
            ("build", &said.build),
            ("url", &said.url),
            ("machine", &said.machine),
            ("machine url", &said.machine_url),
            ("distro", &said.distro),
            ("guest distro", &said.guest_distro),
            ("version", &said.version),
            ("command", &said.command),
        ];
        let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        Self {
            path: run.path.display().to_string(),
            metadata: said.others.clone().into_iter().chain(named).collect(),
            environment: said.environment.clone(),
            systems: said.systems.clone(),
        }
    }
}

impl StatisticalSummary {
    pub(super) fn of(check: &statistical::MetricComparison, builds: &Builds) -> Self {
        let disturbed = |build: Option<&Build>| build.and_then(|build| build.disturbed(check.row));
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let interval = check.effect.and_then(|effect| effect.interval);
        Self {
            verdict: check.verdict,
            ratio: check.effect.and_then(|effect| finite(effect.estimate)),
            interval: interval.map(ConfidenceInterval::from),
            p_value: check.p,
            n: [check.units.src, check.units.dst],
            observations: check.units.unit,
            disturbed: [builds.list().first(), builds.list().last()].map(disturbed),
            threshold: check.threshold,
            noise: check.noise.clone(),
            required_samples: check.required_samples,
        }
    }
}

/// A part's name, difference and weight.
pub(super) fn summarize_part(part: &ScorePart) -> (String, Option<f64>, f64) {
    (part.term.to_string(), Some(part.difference).filter(|difference| difference.is_finite()), part.weight)
}

/// The parameters in which the first and the last build differ.
pub(super) fn last_param_differences(builds: &Builds, row: MetricIndex) -> Vec<ParamDifference> {
    let [src, .., dst] = builds.list() else { return Vec::new() };
    param_differences(builds, [src, dst], row)
}

/// The parameters in which two builds differ.
pub(super) fn param_differences(builds: &Builds, [src, dst]: [&Build; 2], row: MetricIndex) -> Vec<ParamDifference> {
    let (Some(src), Some(dst)) = (src.readings(row).next(), dst.readings(row).next()) else { return Vec::new() };
    if src.params == dst.params {
        return Vec::new();
    }
    let all = |id| builds.params(id).collect::<BTreeMap<&str, &str>>();
    let (src, dst) = (all(src.params), all(dst.params));
    let names: std::collections::BTreeSet<&str> = src.keys().chain(dst.keys()).copied().collect();
    let differing = names.into_iter().filter(|name| src.get(name) != dst.get(name));
    let told = |name: &str| ParamDifference {
        name: name.to_owned(),
        before: src.get(name).map(|value| (*value).to_owned()),
        after: dst.get(name).map(|value| (*value).to_owned()),
    };
    differing.map(told).collect()
}
