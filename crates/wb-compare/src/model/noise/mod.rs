//! Noise models: how much each metric varies between runs of one build.
//!
//! With a noise model, single runs of two builds can be compared; [`wb_stats::Replicates`] has the method, and
//! `docs/statistics.md` its accuracy. [`learn()`] creates a model from builds, [`mod@file`] reads and writes it.

pub mod file;
mod learn;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Unit;
use wb_results::comparison::CheckId;
use wb_stats::{Dip, Replicates, RunModes, RunNoise, Trend};

use crate::build::{Build, Builds};
pub(crate) use learn::definition_key;
pub use learn::learn;

/// The minimum degrees of freedom (runs minus builds) with which the noise of a metric is used: six runs of one build.
/// With fewer, more than 7 % of the simulated comparisons of equal builds reported a difference.
const MIN_DEGREES_OF_FREEDOM: usize = 5;

/// A noise model: how much each metric varies between runs of one build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseModel {
    /// Distinguishes this file from a tolerance model.
    pub format: NoiseFormat,
    /// The version of this format.
    pub version: u32,
    /// Whether each build had a single run, so that the runs of all builds were pooled, as if they were runs of one
    /// system. Differences between the builds then count as noise.
    pub is_single_system: bool,
    /// The builds it was learnt from, in the order of the command line.
    pub trained_on: Vec<TrainingBuild>,
    /// The noise of each metric, keyed by the identifier of the check of its mean.
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
    /// Provenance of its runs that may explain their noise: machine, distributions, kernel, version. A property has more
    /// than one value if the runs differ.
    pub provenance: BTreeMap<String, BTreeSet<String>>,
}

/// The noise of a metric. Trends and spreads are those of natural logarithms: 0.02 is about two percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricNoise {
    /// The hash of the cell's definition for which it applies; `None` in run-perf's layout.
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
    /// The trend of the levels of the runs (logarithms of their medians) in the order of the command line; `None` with
    /// fewer than three runs.
    pub drift: Option<Trend>,
    /// The trend of samples within runs.
    pub drift_within: Option<Trend>,
    /// Dip test for multiple modes of the runs' medians; `None` with fewer than six runs.
    pub modes: Option<Dip>,
    /// The two modes of the runs, if they are clearly apart: then their spread is that of neither.
    #[serde(default)]
    pub two_modes: Option<RunModes>,
    /// Dip test for multiple modes of the samples within runs.
    pub modes_within: Option<Dip>,
    /// The number of samples beyond Tukey's fences of their run.
    pub outliers: usize,
    /// The number of valid samples that were disturbed from outside, for example by another process.
    pub disturbed: usize,
    /// Why it cannot be used; `None` if it can.
    pub insufficient: Option<InsufficientData>,
}

/// Why the data of a metric are insufficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InsufficientData {
    /// Fewer than five degrees of freedom: runs less builds. A single build needs six runs.
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
        let is_valid = |stddev: f64| stddev.is_finite() && stddev >= 0.0;
        let are_valid = is_valid(noise.stddev) && is_valid(noise.sampling) && noise.within.is_none_or(is_valid);
        (are_valid && noise.degrees >= 1.0).then_some(noise)
    }

    pub fn unusable_reason(&self) -> Option<String> {
        if self.usable().is_some() {
            return None;
        }
        let required_runs = self.builds + MIN_DEGREES_OF_FREEDOM;
        let of_builds = if self.builds > 1 { format!(" of {} builds", self.builds) } else { String::new() };
        let runs = if self.runs == 1 { "run" } else { "runs" };
        Some(match self.insufficient {
            Some(InsufficientData::TooFewRuns) => {
                format!("{} {runs}{of_builds}: at least {required_runs} are required", self.runs)
            }
            Some(InsufficientData::NoVariation) => "all runs have the same value".to_owned(),
            Some(InsufficientData::NotPositive) => "a value is not above zero".to_owned(),
            None => "its values are invalid".to_owned(),
        })
    }
}

impl NoiseModel {
    pub fn covers_any(&self, builds: &Builds) -> bool {
        self.checks.keys().any(|id| CheckId::parse(id).is_ok_and(|id| builds.find(&id).is_some()))
    }

    /// The provenance values of builds that no build of the model has: property, build name, and the values separated by
    /// commas. Properties without a value in the model are skipped.
    pub fn unseen_provenance<'a>(&self, builds: &'a [Build]) -> Vec<(String, &'a str, String)> {
        let mut unseen = Vec::new();
        for build in builds {
            for (property, values) in learn::provenance(build) {
                let training_values: BTreeSet<&String> = self
                    .trained_on
                    .iter()
                    .filter_map(|training| training.provenance.get(&property))
                    .flatten()
                    .collect();
                let new_values: Vec<&str> =
                    values.iter().filter(|value| !training_values.contains(value)).map(String::as_str).collect();
                if !training_values.is_empty() && !new_values.is_empty() {
                    unseen.push((property, build.name.as_str(), new_values.join(", ")));
                }
            }
        }
        unseen
    }
}
