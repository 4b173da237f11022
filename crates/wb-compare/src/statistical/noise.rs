//! Lookup of the between-run noise of compared metrics in noise models.

use wb_results::comparison::{CheckId, NoiseModelUse, Statistic};
use wb_stats::RunNoise;

use crate::build::{Build, Builds, MetricIndex};
use crate::model::noise::{MetricNoise, NoiseModel, definition_key};

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
