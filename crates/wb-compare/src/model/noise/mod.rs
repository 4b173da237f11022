//! Models of noise: how far runs of one build lie apart, for every metric.
//!
//! With one, single runs can be held against each other; [`wb_stats::Replicates`] says how, and `docs/statistics.md`
//! what that is worth. [`learn`] makes one of builds, [`file`] reads and writes it.

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

/// So many degrees of freedom are the fewest that a model is used with: six runs of one build. With fewer, sides that do
/// not differ were said to in more than 7 % of the simulated comparisons.
const MIN_DEGREES_OF_FREEDOM: usize = 5;

/// How far runs of one build lie apart, for every metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseModel {
    /// What tells this file from a model of scores.
    pub format: NoiseFormat,
    /// The version of this format.
    pub version: u32,
    /// Whether each build was a single run, so that all were taken for runs of one.
    pub one_system: bool,
    /// What it was learnt from, in the order in which that was given.
    pub trained_on: Vec<TrainingBuild>,
    /// What it says, by the identifier of the metric's mean.
    pub checks: BTreeMap<String, MetricNoise>,
}

/// The one format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NoiseFormat {
    /// A model of noise.
    #[serde(rename = "weighbridge-noise")]
    Noise,
}

/// A build that a model was learnt from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrainingBuild {
    /// Its name.
    pub build: String,
    /// The folders of its runs.
    pub runs: Vec<String>,
    /// What may explain its noise: machine, distributions, kernel, version; all values that its runs have.
    pub provenance: BTreeMap<String, BTreeSet<String>>,
}

/// What runs say of the noise of a metric. Shares are of logarithms: 0.02 is two percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricNoise {
    /// The key of the definition that it holds for; none in run-perf's layout, which has none.
    pub definition_key: Option<String>,
    /// Runs that it was learnt from.
    pub runs: usize,
    /// Builds that these are of, each compared with itself alone.
    pub builds: usize,
    /// Samples in all of them.
    pub samples: usize,
    /// Runs that were left out, since their definition is another one.
    pub excluded_runs: usize,
    /// The median of the runs' medians, in the metric's unit.
    pub level: f64,
    /// That unit; none where no build says.
    #[serde(default)]
    pub unit: Option<Unit>,
    /// How far runs lie apart; none where nobody can say.
    #[serde(flatten)]
    pub variation: Option<Replicates>,
    /// Whether the runs' levels rise or fall in the order in which they were given, as a share each; none below three.
    pub drift: Option<Trend>,
    /// Whether samples rise or fall within runs, as a share each.
    pub drift_within: Option<Trend>,
    /// Whether the runs' medians fall into several modes; none below six.
    pub modes: Option<Dip>,
    /// Whether samples within runs do.
    pub modes_within: Option<Dip>,
    /// Samples beyond Tukey's fences of their run.
    pub outliers: usize,
    /// Counted samples that something disturbed from outside.
    pub disturbed: usize,
    /// Why it cannot be used; none where it can.
    pub insufficient: Option<InsufficientData>,
}

/// Why noise is not known well enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InsufficientData {
    /// There are fewer than six runs of one build, or than five more than there are builds.
    TooFewRuns,
    /// All runs of a build have the same level: more likely a coarse clock than no noise.
    NoVariation,
    /// A value is zero or less, and noise is learnt on logarithms.
    NotPositive,
}

impl MetricNoise {
    /// What verdicts may rest on; none where it is too thin, or is no noise at all.
    pub fn usable(&self) -> Option<&RunNoise> {
        let noise = &self.variation.as_ref().filter(|_| self.insufficient.is_none())?.noise;
        let sound = |share: f64| share.is_finite() && share >= 0.0;
        (sound(noise.stddev) && sound(noise.sampling) && noise.within.is_none_or(sound) && noise.degrees >= 1.0)
            .then_some(noise)
    }

    /// Why it cannot be used, in words; none where it can.
    pub fn unusable_reason(&self) -> Option<String> {
        if self.usable().is_some() {
            return None;
        }
        let wanted = self.builds + MIN_DEGREES_OF_FREEDOM;
        let of = if self.builds > 1 { format!(" of {} builds", self.builds) } else { String::new() };
        let runs = if self.runs == 1 { "run" } else { "runs" };
        Some(match self.insufficient {
            Some(InsufficientData::TooFewRuns) => format!("{} {runs}{of}, and {wanted} are the fewest", self.runs),
            Some(InsufficientData::NoVariation) => "all runs have the same value".to_owned(),
            Some(InsufficientData::NotPositive) => "a value is not above zero".to_owned(),
            None => "its figures are no noise".to_owned(),
        })
    }
}

impl NoiseModel {
    /// Whether it knows any check that the builds have.
    pub fn covers_any(&self, builds: &Builds) -> bool {
        self.checks.keys().any(|id| CheckId::parse(id).is_ok_and(|id| builds.find(&id).is_some()))
    }

    /// What builds were measured on that no build of the model was: the kind of thing, a build's name, and its values.
    pub fn unseen_provenance<'a>(&self, builds: &'a [Build]) -> Vec<(String, &'a str, String)> {
        let mut strange = Vec::new();
        for build in builds {
            for (what, values) in learn::provenance(build) {
                let known = || self.trained_on.iter().filter_map(|learnt| learnt.provenance.get(&what)).flatten();
                let others: Vec<&str> =
                    values.iter().filter(|value| !known().any(|known| known == *value)).map(String::as_str).collect();
                if known().next().is_some() && !others.is_empty() {
                    strange.push((what, build.name.as_str(), others.join(", ")));
                }
            }
        }
        strange
    }
}
