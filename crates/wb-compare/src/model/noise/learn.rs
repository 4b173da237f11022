//! From builds to a model of their noise.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use wb_model::Class;
use wb_stats::{Replicates, Samples, joint_dip, joint_trend, outliers};

use super::{
    InsufficientData, MIN_DEGREES_OF_FREEDOM, MetricNoise, NoiseFormat, NoiseModel, TrainingBuild, file::VERSION,
};
use crate::build::{Build, Builds, MetricIndex, ParamSetId, Run};
use crate::id::Statistic;
use crate::source::DEFINITION_KEY;
use crate::statistical::observations::samples;

/// Learns from builds, each of which is runs of one system. Where every build is a single run, all are taken for runs of
/// one: then what builds differ in is noise as well.
pub fn learn(builds: &Builds) -> NoiseModel {
    let one_system = builds.list().iter().all(|build| build.runs.len() == 1);
    let systems: Vec<Vec<&Run>> = match one_system {
        true => vec![builds.list().iter().flat_map(|build| &build.runs).collect()],
        false => builds.list().iter().map(|build| build.runs.iter().collect()).collect(),
    };
    let rows: Vec<MetricIndex> = builds.rows().collect();
    let checks = rows.into_par_iter().filter_map(|row| {
        let id = builds.id(row, Statistic::Mean);
        let measures = id.class != Class::Check;
        Some((id.to_string(), learn_metric(builds, &systems, row).filter(|_| measures)?))
    });
    let learnt_from = builds.list().iter().map(|build| TrainingBuild {
        build: build.name.clone(),
        runs: build.runs.iter().map(|run| run.path.display().to_string()).collect(),
        provenance: provenance(build),
    });
    NoiseModel {
        format: NoiseFormat::Noise,
        version: VERSION,
        one_system,
        trained_on: learnt_from.collect(),
        checks: checks.collect(),
    }
}

/// Of a metric; none where no run has a number of it.
fn learn_metric(builds: &Builds, systems: &[Vec<&Run>], row: MetricIndex) -> Option<MetricNoise> {
    let known = |run: &&Run| !samples(run, row).is_empty();
    let params = |run: &&Run| run.reading(row).map(|reading| reading.params);
    let all: Vec<&Run> = systems.iter().flatten().copied().filter(known).collect();
    // Of several definitions the one that was measured last is most likely the one that will be compared.
    let definition_key = definition_key(builds, params(all.last()?)?);
    let same = |run: &&Run| params(run).is_some_and(|params| self::definition_key(builds, params) == definition_key);
    let systems: Vec<Vec<&Run>> =
        systems.iter().map(|runs| runs.iter().copied().filter(known).filter(same).collect()).collect();
    let systems: Vec<Vec<&Run>> = systems.into_iter().filter(|runs| !runs.is_empty()).collect();
    let values: Vec<Vec<Vec<f64>>> =
        systems.iter().map(|runs| runs.iter().map(|run| samples(run, row)).collect()).collect();
    let runs: Vec<Samples> = values.iter().flatten().flat_map(|run| Samples::new(run)).collect();
    let variation = Replicates::of(&values);
    let medians = series_by_system(&values, |run| Some(run.median()));
    let logs = |samples: &Samples| Samples::new(&samples.in_order().iter().map(|x| x.ln()).collect::<Vec<_>>()).ok();
    let drift = series_by_system(&values, |run| Some(run.median().ln()).filter(|log| log.is_finite()));
    let within: Vec<Samples> = runs.iter().filter_map(logs).collect();
    let counted = systems.iter().map(Vec::len).sum();
    let too_thin = if runs.iter().any(|run| run.min() <= 0.0) {
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
        runs: counted,
        builds: systems.len(),
        samples: runs.iter().map(Samples::count).sum(),
        excluded_runs: all.len() - counted,
        level: Samples::new(&levels).ok()?.median(),
        unit: builds.unit(row),
        variation,
        drift: joint_trend(&drift),
        drift_within: joint_trend(&within),
        modes: joint_dip(&medians),
        modes_within: joint_dip(&runs),
        outliers: runs.iter().map(|run| outliers(run).positions.len()).sum(),
        disturbed: systems.iter().flatten().filter_map(|run| run.reading(row)).map(|it| it.disturbed as usize).sum(),
        insufficient: too_thin,
    })
}

/// A figure of each run, a series for each system; those without the figure are left out.
fn series_by_system(values: &[Vec<Vec<f64>>], figure: impl Fn(&Samples) -> Option<f64>) -> Vec<Samples> {
    let of_run = |run: &Vec<f64>| figure(&Samples::new(run).ok()?);
    let series = values.iter().map(|runs| runs.iter().filter_map(of_run).collect::<Vec<f64>>());
    series.flat_map(|figures| Samples::new(&figures)).collect()
}

/// The definition key among parameters; none where the layout has none.
pub(crate) fn definition_key(builds: &Builds, params: ParamSetId) -> Option<String> {
    builds.params(params).find(|(name, _)| *name == DEFINITION_KEY).map(|(_, key)| key.to_owned())
}

/// What may explain a build's noise.
pub(super) fn provenance(build: &Build) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for run in &build.runs {
        let said = &run.metadata;
        let named = [
            ("machine", said.machine.clone()),
            ("distro", said.distro.clone()),
            ("guest distro", said.guest_distro.clone()),
            ("version", said.version.clone()),
            ("kernel", said.kernel()),
        ];
        for (name, value) in named {
            all.entry(name.to_owned()).or_default().extend(value);
        }
    }
    all.retain(|_, values| !values.is_empty());
    all
}
