//! The endpoints of a bisection: their results and the checks in which they differ.

use wb_compare::comparison::{ComparisonResult, FailOn, FinalVerdict};
use wb_compare::run_perf::tolerance;
use wb_compare::statistical::{self, Threshold};
use wb_compare::{BuildSource, Builds, ReadOptions};
use wb_record::RunFolder;
use wb_stats::RunPrior;

use super::state::{BisectionConfig, BisectionEndpoint, BisectionFolder};
use crate::definitions::study_in_memory;
use crate::error::SessionError;
use crate::event::EventSink;

/// Compares the bad endpoint with the good one.
pub(super) fn compare(
    folder: &BisectionFolder,
    config: &BisectionConfig,
    events: &EventSink,
) -> Result<ComparisonResult, SessionError> {
    let builds = read_builds(&endpoint_arguments(folder, config), events)?;
    let directions = builds.directions().clone();
    let threshold = config.threshold;
    let by_tolerance =
        tolerance::Options { tolerance: threshold, directions: directions.clone(), ..tolerance::Options::default() };
    let threshold = Threshold::Percent(threshold);
    // The revisions' own runs show how much runs differ.
    let run_noise = RunPrior::NONE;
    let by_statistics = statistical::Options { threshold, directions, run_noise, ..statistical::Options::default() };
    let tolerances = tolerance::compare(&builds, &[], &by_tolerance);
    let statistics = statistical::compare(&builds, &[], &by_statistics);
    Ok(ComparisonResult::of(&builds, &tolerances, statistics.as_ref(), None, FailOn::default()))
}

/// The primary checks in which the endpoints differ.
pub(super) fn differing_checks(outcome: &ComparisonResult) -> Vec<String> {
    let differs = FinalVerdict::is_change;
    let checks = outcome.checks.iter().filter(|check| check.primary && differs(check.final_verdict));
    checks.map(|check| check.id.to_string()).collect()
}

/// The results of both endpoints, as build arguments: first the good one.
pub(super) fn endpoint_arguments(folder: &BisectionFolder, config: &BisectionConfig) -> [String; 2] {
    [&config.good, &config.bad].map(|endpoint| endpoint_results(folder, config, endpoint))
}

/// The first runs of a revision, as a build argument: separated by commas.
pub(super) fn run_argument(folder: &BisectionFolder, name: &str, runs: u16) -> String {
    let runs = (0..runs).map(|run| folder.results_path(name, run).display().to_string());
    runs.collect::<Vec<_>>().join(",")
}

fn endpoint_results(folder: &BisectionFolder, config: &BisectionConfig, endpoint: &BisectionEndpoint) -> String {
    let resolve = |run: &str| config.working_dir.join(run).display().to_string();
    match &endpoint.results {
        Some(runs) => runs.split(',').map(resolve).collect::<Vec<_>>().join(","),
        None => run_argument(folder, &endpoint.revision, config.runs),
    }
}

/// Reads builds whose names do not matter.
pub(super) fn read_builds(typed: &[String], events: &EventSink) -> Result<Builds, SessionError> {
    let source = |(at, text): (usize, &String)| BuildSource::parse(&format!("{at}={text}"));
    let sources = typed.iter().enumerate().map(source).collect::<Result<Vec<_>, _>>()?;
    let study = |run: &RunFolder| study_in_memory(run, events);
    Ok(wb_compare::read(&sources, &ReadOptions::default(), &study)?.builds)
}
