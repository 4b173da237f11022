//! The endpoints of a bisection: their results and the checks in which they differ.

use wb_compare::comparison::{self, FailOn};
use wb_compare::run_perf::tolerance;
use wb_compare::statistical::{self, ENOUGH_SAMPLES, MetricComparison, Threshold, Verdict};
use wb_compare::{BuildSource, Builds, ReadOptions};
use wb_record::RunFolder;
use wb_results::comparison::{ComparisonMethod, ComparisonResult, FinalVerdict, ObservationKind, RequiredSamples};
use wb_stats::RunPrior;

use super::state::{BisectionConfig, BisectionEndpoint, BisectionFolder};
use crate::definitions::study_in_memory;
use crate::error::SessionError;
use crate::event::EventSink;

/// Compares the bad endpoint with the good one, by statistics whatever wrote their results: the variation between the
/// runs of each, or what runs are assumed to differ where both are single values.
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
    let by_statistics = |run_noise, is_noise_of_results| {
        let directions = directions.clone();
        let options =
            statistical::Options { threshold, directions, run_noise, is_noise_of_results, ..Default::default() };
        statistical::compare(&builds, &[], &options)
    };
    let tolerances = tolerance::compare(&builds, &[], &by_tolerance);
    // The revisions' own runs show how much runs differ.
    let mut statistics = by_statistics(RunPrior::NONE, false);
    // Of single values it is assumed. What is found is confirmed by other runs before it is named.
    let assumed = by_statistics(config.run_prior(), true);
    for check in statistics.iter_mut().flat_map(|statistics| &mut statistics.checks) {
        if check.counts.has_several_runs() || check.counts.min_samples() >= ENOUGH_SAMPLES {
            continue;
        }
        match assumed.as_ref().and_then(|assumed| assumed.metric(check.row)) {
            Some(assumed) if is_single_values(check) => *check = assumed.clone(),
            // As in `compare`: attempts that failed are no samples, and make them fewer.
            _ if is_compared(check.verdict) && !check.failures_rose() => {
                check.verdict = Verdict::Inconclusive;
                check.required_samples = Some(RequiredSamples {
                    per_side: Some(ENOUGH_SAMPLES),
                    unit: ObservationKind::Samples,
                    is_minimum: true,
                });
            }
            _ => {}
        }
    }
    let by = Some(ComparisonMethod::Statistical);
    Ok(comparison::summarize(&builds, &tolerances, statistics.as_ref(), by, FailOn::default()))
}

/// Whether a verdict results from two values.
fn is_compared(verdict: Verdict) -> bool {
    !matches!(verdict, Verdict::Missing | Verdict::Invalid | Verdict::Incomparable)
}

/// Whether each side is one value of one run.
fn is_single_values(check: &MetricComparison) -> bool {
    check.counts.samples == [1, 1] && check.counts.runs == [1, 1]
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
    let source = |(index, text): (usize, &String)| BuildSource::parse(&format!("{index}={text}"));
    let sources = typed.iter().enumerate().map(source).collect::<Result<Vec<_>, _>>()?;
    let study = |run: &RunFolder| study_in_memory(run, events);
    Ok(wb_compare::read(&sources, &ReadOptions::default(), &study)?.builds)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::bisect::MeasureMethod;

    /// Writes a folder in run-perf's layout with one value and no samples.
    fn write_run(folder: &Path, mean: f64) -> String {
        let serial = folder.join("Localhost/fio/0000");
        fs::create_dir_all(&serial).unwrap();
        let result = format!(
            r#"[{{"iteration_name": "read", "iteration_data": {{
                "parameters": {{"benchmark": [{{"primary_metric": "iops", "name": "read"}}]}},
                "throughput": {{"iops": [{{"client_hostname": "all", "mean": {mean}, "stddevpct": 1, "samples": []}}]}}}}}}]"#
        );
        fs::write(serial.join("result.json"), result).unwrap();
        folder.display().to_string()
    }

    /// Whether ends with these runs differ by more than 5 %.
    fn differ(good: &[f64], bad: &[f64], run_noise: f64) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let end = |side: &str, means: &[f64]| {
            let run = |(index, mean): (usize, &f64)| write_run(&folder.path().join(format!("{side}{index}")), *mean);
            let runs: Vec<String> = means.iter().enumerate().map(run).collect();
            BisectionEndpoint { revision: side.to_owned(), results: Some(runs.join(",")) }
        };
        let config = BisectionConfig {
            repo: folder.path().to_owned(),
            working_dir: folder.path().to_owned(),
            good: end("good", good),
            bad: end("bad", bad),
            build_command: None,
            measure: MeasureMethod::Command("true".to_owned()),
            runs: 1,
            threshold: 5.0,
            run_noise,
        };
        let bisection = BisectionFolder::new(folder.path()).unwrap();
        !differing_checks(&compare(&bisection, &config, &EventSink::default()).unwrap()).is_empty()
    }

    /// Runs of a revision around a level, which vary by this much: their sum is about normal.
    fn runs(seed: &mut u64, level: f64, stddev: f64) -> [f64; 4] {
        let mut uniform = || {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 33) as f64 / f64::from(1u32 << 31)
        };
        std::array::from_fn(|_| level * (1.0 + stddev * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0)))
    }

    #[test]
    fn equal_ends_whose_runs_vary_seldom_differ() {
        let mut seed = 1;
        let mut differing = |pairs: usize, ratio: f64, stddev: f64| {
            let mut end = |level: f64| runs(&mut seed, level, stddev);
            (0..pairs).filter(|_| differ(&end(1000.0), &end(1000.0 * ratio), 5.0)).count()
        };
        let equal = differing(60, 1.0, 0.1);
        assert!(equal <= 6, "{equal} of 60");
        assert_eq!(differing(10, 0.8, 0.03), 10);
    }

    #[test]
    fn single_values_differ_as_runs_are_assumed_to() {
        let at = |bad: f64, run_noise: f64| differ(&[1000.0], &[bad], run_noise);
        assert_eq!([at(900.0, 5.0), at(900.0, 0.0), at(500.0, 5.0)], [false, true, true]);
    }
}
