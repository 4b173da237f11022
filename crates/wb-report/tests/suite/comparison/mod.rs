//! Compares folders for tests and the example.
#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, reason = "a folder that cannot be compared ends the test")]

pub(crate) mod specimen;

use std::path::PathBuf;

use wb_compare::comparison::{self, BuildHistory, FailOn};
use wb_compare::run_perf::tolerance;
use wb_compare::{BuildSource, Builds, ReadOptions, ToleranceModel, statistical};
use wb_results::comparison::{ComparisonMethod, ComparisonResult};

/// Options of a comparison.
#[derive(Default)]
pub(crate) struct CompareOptions {
    pub(crate) method: Option<ComparisonMethod>,
    pub(crate) models: Vec<ToleranceModel>,
    pub(crate) weights: tolerance::score::Weights,
}

/// Reads folders as builds, each by its own name.
pub(crate) fn read(folders: &[PathBuf]) -> Builds {
    let sources: Vec<BuildSource> =
        folders.iter().map(|folder| BuildSource::parse(folder.to_str().unwrap()).unwrap()).collect();
    let options = ReadOptions { include_incorrect: true, ..ReadOptions::default() };
    wb_compare::read(&sources, &options, &|_| Err("no run of this program is among them".to_owned())).unwrap().builds
}

/// Compares builds, and renders the result with `render`.
pub(crate) fn compare<T>(
    builds: &Builds,
    how: &CompareOptions,
    render: impl FnOnce(&ComparisonResult, &BuildHistory<'_>) -> T,
) -> T {
    let directions = builds.directions().clone();
    let by_tolerance =
        tolerance::Options { weights: how.weights, directions: directions.clone(), ..tolerance::Options::default() };
    let by_statistics = statistical::Options { directions, ..statistical::Options::default() };
    let tolerances = tolerance::compare(builds, &how.models, &by_tolerance);
    let statistics: Vec<_> =
        (1..builds.list().len()).map(|build| statistical::against(builds, build, &[], &by_statistics)).collect();
    let last = statistics.last().and_then(Option::as_ref);
    let outcome = comparison::summarize(builds, &tolerances, last, how.method, FailOn::default());
    render(&outcome, &BuildHistory::new(builds, &tolerances, &statistics, how.method))
}
