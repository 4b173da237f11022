//! Estimates the false-positive rate and the noise of a system.

use std::collections::{BTreeMap, BTreeSet};

use wb_compare::calibrate::{self, CalibrationSample, Options};
use wb_model::{CellId, MetricKey, TestName};
use wb_plan::{Plan, Request, SamplingOrder};
use wb_record::{JournalEvent, JournalLine, RunFolder};
use wb_results::CellResult;
use wb_results::Study;
use wb_results::experiment::{CalibrationCase, CalibrationExperiment, ComparedMetric, Criterion, Experiment};
use wb_stats::SamplingRule;

use super::VariantsError;
use super::criterion::{build_criterion, primary_metrics};
use super::experiment::write_experiment;
use crate::error::SessionError;
use crate::event::EventSink;
use crate::hosts::localhost;
use crate::measure::{MeasureSession, require_same_plan};
use crate::options::SessionOptions;
use crate::request::MeasureRequest;
use crate::result::SessionStatus;

/// Target false-positive rate in percent, the same as that of `compare`.
const ERROR_RATE: f64 = 5.0;

#[derive(Debug, Clone)]
pub struct CalibrationOptions {
    /// Number of runs, each with its own preparation.
    pub runs: u16,
    /// Number of samples on each side of a comparison; a run has twice as many.
    pub samples: u16,
    /// Smallest difference that matters, in percent.
    pub threshold: f64,
}

/// Compares runs of one test on the same system with each other, and records the result.
pub fn calibrate(
    options: &CalibrationOptions,
    request: MeasureRequest,
    session: &SessionOptions,
    events: &EventSink,
) -> Result<(CalibrationExperiment, SessionStatus), SessionError> {
    let request = build_request(options, request, events)?;
    let mut criterion = None;
    let mut metrics = BTreeMap::new();
    let mut measuring = MeasureSession::new(&request, session, events)?;
    measuring.single_profile_command = Some("calibrate");
    let folder = &session.run_folder.path;
    require_same_plan(folder, &request)?;
    let measured = measuring.run(|workers, named| {
        let mut plan = request.plan(Some(workers), named, events)?;
        fix_sample_count(&mut plan, options);
        let planned_metrics = plan.cells.iter().map(|cell| (case_name(&cell.id), primary_metrics(&request, cell)));
        metrics = planned_metrics.collect();
        criterion = Some(build_criterion(&request, &plan, options.threshold, ERROR_RATE)?);
        Ok(plan)
    })?;
    let criterion = criterion.ok_or(VariantsError::NoPlan)?;
    let mut result = evaluate(&measured.study, criterion, &metrics, options)?;
    let run = RunFolder::open(folder)?;
    result.added = last_invocation_serials(&run.journal_lines()?);
    write_experiment(&run, &Experiment::Calibration(result.clone()))?;
    Ok((result, measured.status()))
}

/// Requests the test once for each run.
fn build_request(
    options: &CalibrationOptions,
    mut all: MeasureRequest,
    events: &EventSink,
) -> Result<MeasureRequest, SessionError> {
    all.plan(None, &localhost(), events)?;
    let run = |request: &Request, number: u16| {
        let name = format!("run-{number:03}");
        let id = TestName::new(&name).unwrap_or_else(|_| unreachable!("`{name}` is a valid name"));
        Request { id: Some(id), ..request.clone() }
    };
    all.requests = all.requests.iter().flat_map(|one| (0..options.runs).map(move |index| run(one, index))).collect();
    all.name = format!("calibrate {} ({} samples a side)", all.name, options.samples);
    all.sampling.order = SamplingOrder::Sequential;
    all.sampling.min_samples = 2 * usize::from(options.samples);
    all.sampling.max_samples = all.sampling.min_samples;
    Ok(all)
}

fn fix_sample_count(plan: &mut Plan, options: &CalibrationOptions) {
    let samples = 2 * usize::from(options.samples);
    for cell in &mut plan.cells {
        cell.rule = SamplingRule::External { min_samples: samples, max_samples: samples };
    }
}

/// The serials with attempts in the last invocation of a run; empty if no earlier invocation has attempts.
fn last_invocation_serials(lines: &[JournalLine]) -> Vec<String> {
    let mut invocations: Vec<BTreeSet<String>> = Vec::new();
    for line in lines {
        match &line.event {
            JournalEvent::InvocationStarted { .. } => invocations.push(BTreeSet::new()),
            JournalEvent::AttemptEnded(ended) => {
                invocations.last_mut().map(|serials| serials.insert(ended.cell.serial.to_string()));
            }
            _ => {}
        }
    }
    invocations.retain(|serials| !serials.is_empty());
    match invocations.split_last() {
        Some((last, before)) if !before.is_empty() => last.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

fn case_name(cell: &CellId) -> String {
    cell.case.to_string()
}

fn evaluate(
    study: &Study,
    criterion: Criterion,
    metrics: &BTreeMap<String, Vec<ComparedMetric>>,
    options: &CalibrationOptions,
) -> Result<CalibrationExperiment, VariantsError> {
    let options = Options {
        samples_per_side: usize::from(options.samples),
        threshold: options.threshold,
        error_rate: ERROR_RATE / 100.0,
    };
    let mut cases: BTreeMap<String, Vec<&CellResult>> = BTreeMap::new();
    for cell in &study.cells {
        cases.entry(case_name(&cell.id)).or_default().push(cell);
    }
    let case = |(case, mut runs): (String, Vec<&CellResult>)| {
        let start = |cell: &&CellResult| cell.attempts.first().map_or(f64::INFINITY, |sample| sample.start_seconds);
        runs.sort_by(|one, other| start(one).total_cmp(&start(other)));
        let of_metric = |metric: &ComparedMetric| {
            let (samples, boots) = collect_samples(&runs, &metric.metric);
            let calibration = calibrate::calibrate(&samples, &options)
                .map_err(|error| VariantsError::Evaluation { metric: metric.metric.clone(), cause: error.into() })?;
            let incomplete = runs.iter().filter(|run| run.outcome.is_incomplete());
            let shortfalls = incomplete.map(|run| (run.id.serial.to_string(), run.outcome.to_string())).collect();
            let metric = Some(metric.clone());
            Ok(CalibrationCase { case: case.clone(), metric, runs: runs.len(), boots, shortfalls, calibration })
        };
        metrics.get(&case).into_iter().flatten().map(of_metric).collect::<Result<Vec<_>, VariantsError>>()
    };
    let cases = cases.into_iter().map(case).collect::<Result<Vec<_>, VariantsError>>()?.concat();
    Ok(CalibrationExperiment { samples_per_side: options.samples_per_side, criterion, cases, added: Vec::new() })
}

/// The samples of runs in order, and the number of distinct boots.
fn collect_samples(runs: &[&CellResult], metric: &MetricKey) -> (Vec<CalibrationSample>, usize) {
    let boots: BTreeSet<&str> = runs.iter().filter_map(|run| Some(run.provenance.get("boot")?.as_str())).collect();
    let boots: Vec<&str> = boots.into_iter().collect();
    let boot_of = |run: &CellResult| {
        let boot = run.provenance.get("boot").map_or("", String::as_str);
        boots.iter().position(|other| *other == boot).unwrap_or_default() as u32
    };
    let of_run = |(number, run): (u32, &&CellResult)| {
        let boot = boot_of(run);
        let counted = run.attempts.iter().filter(|sample| sample.counted);
        let sample = counted.filter_map(move |sample| {
            let value = *sample.values.get(metric)?;
            Some(CalibrationSample { boot, run: number, value, disturbed: !sample.disturbances.is_empty() })
        });
        sample.collect::<Vec<_>>()
    };
    ((0..).zip(runs).flat_map(of_run).collect(), boots.len())
}
