//! Learns a noise model from builds.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use wb_results::comparison::Statistic;
use wb_stats::{Replicates, RunModes, Samples, joint_dip, joint_trend, outliers};

use super::{
    InsufficientData, MIN_DEGREES_OF_FREEDOM, MetricNoise, NoiseFormat, NoiseModel, TrainingBuild, file::VERSION,
};
use crate::build::DEFINITION_KEY;
use crate::build::{Build, Builds, MetricIndex, ParamSetId, Run};
use crate::statistical::observations::samples;

/// Learns from builds, each of which has runs of one system. If every build is a single run, all are treated as runs of
/// one system: then differences between builds count as noise too.
pub fn learn(builds: &Builds) -> NoiseModel {
    let is_single_system = builds.list().iter().all(|build| build.runs.len() == 1);
    let systems: Vec<Vec<&Run>> = if is_single_system {
        vec![builds.list().iter().flat_map(|build| &build.runs).collect()]
    } else {
        builds.list().iter().map(|build| build.runs.iter().collect()).collect()
    };
    let rows: Vec<MetricIndex> = builds.rows().collect();
    let checks = rows.into_par_iter().filter_map(|row| {
        let id = builds.id(row, Statistic::Mean);
        // Any metric can be chosen to decide in a later comparison, also one that does not measure performance.
        Some((id.to_string(), learn_metric(builds, &systems, row)?))
    });
    let training_builds = builds.list().iter().map(|build| TrainingBuild {
        build: build.name.clone(),
        runs: build.runs.iter().map(|run| run.path.display().to_string()).collect(),
        provenance: provenance(build),
    });
    NoiseModel {
        format: NoiseFormat::Noise,
        version: VERSION,
        is_single_system,
        trained_on: training_builds.collect(),
        checks: checks.collect(),
    }
}

/// `None` if no run has a value.
fn learn_metric(builds: &Builds, systems: &[Vec<&Run>], row: MetricIndex) -> Option<MetricNoise> {
    let has_samples = |run: &&Run| !samples(run, row).is_empty();
    let params = |run: &&Run| run.reading(row).map(|reading| reading.params);
    let all: Vec<&Run> = systems.iter().flatten().copied().filter(has_samples).collect();
    // Of several definitions the most recent one is most likely the one that will be compared.
    let definition_key = definition_key(builds, params(all.last()?)?);
    let has_same_key =
        |run: &&Run| params(run).is_some_and(|params| self::definition_key(builds, params) == definition_key);
    let systems: Vec<Vec<&Run>> =
        systems.iter().map(|runs| runs.iter().copied().filter(has_samples).filter(has_same_key).collect()).collect();
    let systems: Vec<Vec<&Run>> = systems.into_iter().filter(|runs| !runs.is_empty()).collect();
    let values: Vec<Vec<Vec<f64>>> =
        systems.iter().map(|runs| runs.iter().map(|run| samples(run, row)).collect()).collect();
    let runs: Vec<Samples> = values.iter().flatten().flat_map(|run| Samples::new(run)).collect();
    let variation = Replicates::new(&values);
    let medians = series_by_system(&values, |run| Some(run.median()));
    let logs = |samples: &Samples| Samples::new(&samples.in_order().iter().map(|x| x.ln()).collect::<Vec<_>>()).ok();
    let drift = series_by_system(&values, |run| Some(run.median().ln()).filter(|log| log.is_finite()));
    let within: Vec<Samples> = runs.iter().filter_map(logs).collect();
    let run_count = systems.iter().map(Vec::len).sum();
    let insufficient = if runs.iter().any(|run| run.min() <= 0.0) {
        Some(InsufficientData::NotPositive)
    } else if variation.is_none_or(|variation| variation.noise.degrees < MIN_DEGREES_OF_FREEDOM as f64) {
        Some(InsufficientData::TooFewRuns)
    } else if variation.is_some_and(|variation| variation.noise.stddev == 0.0) {
        Some(InsufficientData::NoVariation)
    } else {
        None
    };
    let levels: Vec<f64> = runs.iter().map(Samples::median).collect();
    Some(MetricNoise {
        definition_key,
        runs: run_count,
        builds: systems.len(),
        samples: runs.iter().map(Samples::count).sum(),
        excluded_runs: all.len() - run_count,
        level: Samples::new(&levels).ok()?.median(),
        unit: builds.unit(row),
        variation,
        drift: joint_trend(&drift),
        drift_within: joint_trend(&within),
        modes: joint_dip(&medians),
        two_modes: RunModes::new(&values),
        modes_within: joint_dip(&runs),
        outliers: runs.iter().map(|run| outliers(run).positions.len()).sum(),
        disturbed: systems.iter().flatten().filter_map(|run| run.reading(row)).map(|it| it.disturbed as usize).sum(),
        insufficient,
    })
}

/// One series per system; runs without the statistic are skipped.
fn series_by_system(values: &[Vec<Vec<f64>>], statistic: impl Fn(&Samples) -> Option<f64>) -> Vec<Samples> {
    let of_run = |run: &Vec<f64>| statistic(&Samples::new(run).ok()?);
    let series = values.iter().map(|runs| runs.iter().filter_map(of_run).collect::<Vec<f64>>());
    series.flat_map(|figures| Samples::new(&figures)).collect()
}

/// `None` if the layout has none.
pub(crate) fn definition_key(builds: &Builds, params: ParamSetId) -> Option<String> {
    builds.params(params).find(|(name, _)| *name == DEFINITION_KEY).map(|(_, key)| key.to_owned())
}

pub(super) fn provenance(build: &Build) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for run in &build.runs {
        let metadata = &run.metadata;
        let properties = [
            ("machine", metadata.machine.clone()),
            ("distro", metadata.distro.clone()),
            ("guest distro", metadata.guest_distro.clone()),
            ("version", metadata.version.clone()),
            ("kernel", metadata.kernel()),
        ];
        for (name, value) in properties {
            all.entry(name.to_owned()).or_default().extend(value);
        }
    }
    all.retain(|_, values| !values.is_empty());
    all
}
