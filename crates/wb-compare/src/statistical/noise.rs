//! Lookup of the between-run noise of compared metrics in noise models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::{RunModes, RunNoise};

use crate::build::{Build, Builds, MetricIndex};
use crate::id::{CheckId, Statistic};
use crate::model::noise::{MetricNoise, NoiseModel, definition_key};

/// Whether and how a noise model was used for a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum NoiseModelUse {
    /// The interval includes the noise between runs, as estimated by a model.
    Applied {
        /// The spread of runs, including the noise of their samples, as a fraction.
        spread: f64,
        /// The number of runs behind the estimate.
        runs: usize,
        /// The two modes that they are in, if there are.
        #[serde(default)]
        two_modes: Option<RunModes>,
    },
    /// The model has insufficient data for the metric.
    Insufficient {
        /// The reason.
        why: String,
    },
    /// The models have other definitions of the metric only.
    OtherDefinition,
    /// No model has the metric.
    Unknown,
}

impl NoiseModelUse {
    pub(super) fn two_modes(&self) -> Option<&RunModes> {
        match self {
            Self::Applied { two_modes, .. } => two_modes.as_ref(),
            _ => None,
        }
    }
}

/// Noise models, indexed by row instead of by identifier.
pub(super) struct BoundNoiseModels<'a>(Vec<Vec<Option<&'a MetricNoise>>>);

impl<'a> BoundNoiseModels<'a> {
    pub(super) fn bind(models: &'a [NoiseModel], builds: &Builds) -> Self {
        let bound = models.iter().map(|model| {
            let mut rows = vec![None; builds.rows().len()];
            for (id, noise) in &model.checks {
                let mean_id = CheckId::parse(id).ok().filter(|id| id.statistic == Statistic::Mean);
                if let Some(row) = mean_id.and_then(|id| builds.find(&id)) {
                    rows[row.index()] = Some(noise);
                }
            }
            rows
        });
        Self(bound.collect())
    }

    /// The noise of a metric and its use, from the model with the most degrees of freedom; `None` without models.
    pub(super) fn of(
        &self,
        builds: &Builds,
        sides: [&Build; 2],
        row: MetricIndex,
    ) -> Option<(Option<&'a RunNoise>, NoiseModelUse)> {
        if self.0.is_empty() {
            return None;
        }
        let all: Vec<&MetricNoise> = self.0.iter().filter_map(|rows| rows[row.index()]).collect();
        let keys = || sides.iter().flat_map(|side| side.readings(row)).map(|it| definition_key(builds, it.params));
        let same: Vec<&MetricNoise> =
            all.iter().copied().filter(|noise| keys().all(|key| key == noise.definition_key)).collect();
        let degrees = |noise: &&MetricNoise| noise.usable().map_or(0.0, |noise| noise.degrees);
        let best = same.iter().copied().max_by(|one, other| degrees(one).total_cmp(&degrees(other)));
        let Some(best) = best else {
            return Some((None, if all.is_empty() { NoiseModelUse::Unknown } else { NoiseModelUse::OtherDefinition }));
        };
        let Some(noise) = best.usable() else {
            return Some((None, NoiseModelUse::Insufficient { why: best.unusable_reason().unwrap_or_default() }));
        };
        Some((Some(noise), NoiseModelUse::Applied { spread: noise.stddev, runs: best.runs, two_modes: best.two_modes }))
    }
}
