//! What models say of the noise between runs of the metrics that are compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::RunNoise;

use super::observations::MIN_BOOTSTRAP_RUNS;
use crate::build::{Build, Builds, MetricIndex};
use crate::id::{CheckId, Statistic};
use crate::model::noise::{MetricNoise, NoiseModel, definition_key};

/// What became of the models of noise for a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum NoiseUse {
    /// The interval carries the noise between runs as one of them says.
    Applied {
        /// How far runs lie apart, their samples' noise included, as a share.
        spread: f64,
        /// How many runs say that.
        runs: usize,
    },
    /// Each side has runs enough of its own.
    NotNeeded,
    /// What is known is not enough.
    Insufficient {
        /// Why.
        why: String,
    },
    /// It is known of another definition of the metric alone.
    OtherDefinition,
    /// No model knows the metric.
    Unknown,
}

/// Models, by row instead of by identifier.
pub(super) struct BoundNoiseModels<'a>(Vec<Vec<Option<&'a MetricNoise>>>);

impl<'a> BoundNoiseModels<'a> {
    pub(super) fn bind(models: &'a [NoiseModel], builds: &Builds) -> Self {
        let bound = models.iter().map(|model| {
            let mut rows = vec![None; builds.rows().len()];
            for (id, noise) in &model.checks {
                let found = CheckId::parse(id).ok().filter(|id| id.statistic == Statistic::Mean);
                if let Some(row) = found.and_then(|id| builds.find(&id)) {
                    rows[row.index()] = Some(noise);
                }
            }
            rows
        });
        Self(bound.collect())
    }

    /// What the models say of a metric, and what becomes of it; the one that knows most where several do. None without
    /// models.
    pub(super) fn of(
        &self,
        builds: &Builds,
        sides: [&Build; 2],
        row: MetricIndex,
    ) -> Option<(Option<&'a RunNoise>, NoiseUse)> {
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
            return Some((None, if all.is_empty() { NoiseUse::Unknown } else { NoiseUse::OtherDefinition }));
        };
        let Some(noise) = best.usable() else {
            return Some((None, NoiseUse::Insufficient { why: best.unusable_reason().unwrap_or_default() }));
        };
        let enough = sides.iter().all(|side| side.readings(row).count() >= MIN_BOOTSTRAP_RUNS);
        let used = NoiseUse::Applied { spread: noise.stddev, runs: best.runs };
        Some((Some(noise), if enough { NoiseUse::NotNeeded } else { used }))
    }
}
