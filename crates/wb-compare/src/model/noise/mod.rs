//! Noise models: the spread between runs of one build, for every metric.
//!
//! With a noise model, single runs can be compared; [`wb_stats::Replicates`] has the method, and `docs/statistics.md`
//! its accuracy. [`learn`] creates a model from builds, [`file`] reads and writes it.

pub mod file;
mod learn;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Unit;
use wb_stats::{Dip, Replicates, RunNoise, Trend};

use crate::build::{Build, Builds};
use crate::id::CheckId;
pub(crate) use learn::definition_key;
pub use learn::learn;

/// The minimum degrees of freedom with which a model is used: six runs of one build. With fewer, equal sides were
/// reported as different in more than 7 % of the simulated comparisons.
const MIN_DEGREES_OF_FREEDOM: usize = 5;

/// A noise model: the spread between runs of one build, for every metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseModel {
    /// Distinguishes this file from a tolerance model.
    pub format: NoiseFormat,
    /// The version of this format.
    pub version: u32,
    /// Whether each build was a single run, so that all were treated as runs of one system.
    pub one_system: bool,
    /// The builds it was learnt from, in the given order.
    pub trained_on: Vec<TrainingBuild>,
    /// The noise of each metric, by the identifier of the metric's mean.
    pub checks: BTreeMap<String, MetricNoise>,
}

/// The format of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NoiseFormat {
    /// A noise model.
    #[serde(rename = "weighbridge-noise")]
    Noise,
}

/// A build from which a model was learnt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrainingBuild {
    /// Its name.
    pub build: String,
    /// The folders of its runs.
    pub runs: Vec<String>,
    /// Provenance that may explain its noise: machine, distributions, kernel, version; all values of its runs.
    pub provenance: BTreeMap<String, BTreeSet<String>>,
}

/// The noise of a metric. Shares are of logarithms: 0.02 is two percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricNoise {
    /// The definition key for which it applies; `None` in run-perf's layout.
    pub definition_key: Option<String>,
    /// The number of runs it was learnt from.
    pub runs: usize,
    /// The number of builds of these runs; runs are only compared within their build.
    pub builds: usize,
    /// The number of samples of all runs.
    pub samples: usize,
    /// The number of runs excluded because of a different definition.
    pub excluded_runs: usize,
    /// The median of the runs' medians, in the metric's unit.
    pub level: f64,
    /// The metric's unit, if declared by a build.
    #[serde(default)]
    pub unit: Option<Unit>,
    /// The spread between runs; `None` if it cannot be estimated.
    #[serde(flatten)]
    pub variation: Option<Replicates>,
    /// The trend of the runs' levels in the given order, as a share; `None` with fewer than three runs.
    pub drift: Option<Trend>,
    /// The trend of samples within runs, as a share.
    pub drift_within: Option<Trend>,
    /// Dip test for multiple modes of the runs' medians; `None` with fewer than six runs.
    pub modes: Option<Dip>,
    /// Dip test for multiple modes of the samples within runs.
    pub modes_within: Option<Dip>,
    /// The number of samples beyond Tukey's fences of their run.
    pub outliers: usize,
    /// The number of counted samples that were disturbed from outside.
    pub disturbed: usize,
    /// Why it cannot be used; `None` if it can.
    pub insufficient: Option<InsufficientData>,
}

/// Why the data of a metric are insufficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InsufficientData {
    /// Fewer than six runs of one build, or than five more runs than builds.
    TooFewRuns,
    /// All runs of a build have the same level, which indicates a coarse clock rather than no noise.
    NoVariation,
    /// A value is zero or negative, and noise is learnt from logarithms.
    NotPositive,
}

impl MetricNoise {
    /// The noise that verdicts may use; `None` if the data are insufficient or invalid.
    pub fn usable(&self) -> Option<&RunNoise> {
        let noise = &self.variation.as_ref().filter(|_| self.insufficient.is_none())?.noise;
        let sound = |share: f64| share.is_finite() && share >= 0.0;
        (sound(noise.stddev) && sound(noise.sampling) && noise.within.is_none_or(sound) && noise.degrees >= 1.0)
            .then_some(noise)
    }

    /// The reason why it cannot be used, as text; `None` if it can.
    pub fn unusable_reason(&self) -> Option<String> {
        if self.usable().is_some() {
            return None;
        }
        let required = self.builds + MIN_DEGREES_OF_FREEDOM;
        let of = if self.builds > 1 { format!(" of {} builds", self.builds) } else { String::new() };
        let runs = if self.runs == 1 { "run" } else { "runs" };
        Some(match self.insufficient {
            Some(InsufficientData::TooFewRuns) => format!("{} {runs}{of}: at least {required} are required", self.runs),
            Some(InsufficientData::NoVariation) => "all runs have the same value".to_owned(),
            Some(InsufficientData::NotPositive) => "a value is not above zero".to_owned(),
            None => "its values are invalid".to_owned(),
        })
    }
}

impl NoiseModel {
    /// Whether it has any check of the builds.
    pub fn covers_any(&self, builds: &Builds) -> bool {
        self.checks.keys().any(|id| CheckId::parse(id).is_ok_and(|id| builds.find(&id).is_some()))
    }

    /// The provenance values of builds that no build of the model has: property, build name, and values.
    pub fn unseen_provenance<'a>(&self, builds: &'a [Build]) -> Vec<(String, &'a str, String)> {
        let mut unseen = Vec::new();
        for build in builds {
            for (property, values) in learn::provenance(build) {
                let trained = || self.trained_on.iter().filter_map(|learnt| learnt.provenance.get(&property)).flatten();
                let new_values: Vec<&str> = values
                    .iter()
                    .filter(|value| !trained().any(|trained| trained == *value))
                    .map(String::as_str)
                    .collect();
                if trained().next().is_some() && !new_values.is_empty() {
                    unseen.push((property, build.name.as_str(), new_values.join(", ")));
                }
            }
        }
        unseen
    }
}
