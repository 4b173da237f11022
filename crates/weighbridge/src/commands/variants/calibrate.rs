//! `weighbridge calibrate`: estimates the false-positive rate and the noise of a system.

use std::collections::{BTreeMap, BTreeSet};

use wb_compare::calibrate::{self, CalibrationSample, Options};
use wb_compare::experiment::{CalibrationCase, CalibrationExperiment, Criterion, Experiment};
use wb_model::TestName;
use wb_plan::{Plan, PlanWorkers, Request, SamplingOrder};
use wb_profile::NamedProfile;
use wb_record::{JournalEvent, JournalLine, RunFolder};
use wb_stats::SamplingRule;
use wb_study::Study;
use wb_study::result::CellResult;

use super::criterion::build_criterion;
use super::save_and_print;
use crate::cli::variants::CalibrateArgs;
use crate::commands::hosts::localhost;
use crate::commands::measure::{MeasureSession, require_same_plan, run_folder};
use crate::commands::selection::{MeasureRequest, resolve_single_test};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Target false-positive rate in percent, the same as that of `compare`.
const ERROR_RATE: f64 = 5.0;

/// Compares runs of one test on the same system with each other.
pub(crate) fn calibrate(args: &CalibrateArgs, console: &Console) -> Result<Exit, Error> {
    let request = build_request(args)?;
    let folder = run_folder(&args.single_test.run_folder, "weighbridge-calibrate");
    let mut criterion = None;
    let mut measuring = MeasureSession::new(
        &folder,
        &args.single_test.run_folder,
        &request,
        &args.single_test.hosts,
        &args.single_test.preparation,
    )?;
    measuring.single_profile_command = Some("calibrate");
    require_same_plan(&folder, &request)?;
    let measured = measuring.run(console, |workers, named| {
        let plan = plan_runs(args, &request, workers, named)?;
        criterion = Some(build_criterion(&request, &plan, args.single_test.threshold, ERROR_RATE)?);
        Ok(plan)
    })?;
    let criterion = criterion.ok_or_else(|| Error::Internal("no plan was made".to_owned()))?;
    let mut result = evaluate(&measured.study, criterion, args)?;
    result.added = last_entry_serials(&RunFolder::open(&folder)?.journal_lines()?);
    save_and_print(&Experiment::Calibration(result), &folder, &args.single_test, console)?;
    Ok(measured.exit().unwrap_or(Exit::Success))
}

/// Requests the test once for each run.
fn build_request(args: &CalibrateArgs) -> Result<MeasureRequest, Error> {
    let mut all = resolve_single_test(&args.single_test)?;
    all.plan(None, &localhost())?;
    let run = |request: &Request, number: u16| {
        let name = format!("run-{number:03}");
        let id = TestName::new(&name).unwrap_or_else(|_| unreachable!("`{name}` is a valid name"));
        Request { id: Some(id), ..request.clone() }
    };
    all.requests = all.requests.iter().flat_map(|one| (0..args.runs).map(move |at| run(one, at))).collect();
    all.name = format!("calibrate {} ({} samples a side)", all.name, args.samples);
    all.sampling.order = SamplingOrder::Sequential;
    all.sampling.min_samples = 2 * usize::from(args.samples);
    all.sampling.max_samples = all.sampling.min_samples;
    Ok(all)
}

/// Plans the cells with a fixed number of samples each.
fn plan_runs(
    args: &CalibrateArgs,
    request: &MeasureRequest,
    workers: &PlanWorkers,
    named: &NamedProfile,
) -> Result<Plan, Error> {
    let mut plan = request.plan(Some(workers), named)?;
    let samples = 2 * usize::from(args.samples);
    for cell in &mut plan.cells {
        cell.rule = SamplingRule::External { min_samples: samples, max_samples: samples };
    }
    Ok(plan)
}

/// The serials with attempts in the last entry of a run; empty if no earlier entry has attempts.
fn last_entry_serials(lines: &[JournalLine]) -> Vec<String> {
    let mut entries: Vec<BTreeSet<String>> = Vec::new();
    for line in lines {
        match &line.event {
            JournalEvent::EntryStarted { .. } => entries.push(BTreeSet::new()),
            JournalEvent::AttemptEnded(ended) => {
                entries.last_mut().map(|serials| serials.insert(ended.cell.serial.to_string()));
            }
            _ => {}
        }
    }
    entries.retain(|serials| !serials.is_empty());
    match entries.split_last() {
        Some((last, before)) if !before.is_empty() => last.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

/// Evaluates all samples in the folder.
fn evaluate(study: &Study, criterion: Criterion, args: &CalibrateArgs) -> Result<CalibrationExperiment, Error> {
    let options = Options {
        samples_per_side: usize::from(args.samples),
        threshold: args.single_test.threshold,
        error_rate: ERROR_RATE / 100.0,
    };
    let mut cases: BTreeMap<String, Vec<&CellResult>> = BTreeMap::new();
    for cell in &study.cells {
        cases.entry(cell.cell.case.to_string()).or_default().push(cell);
    }
    let case = |(case, mut runs): (String, Vec<&CellResult>)| {
        let start = |cell: &&CellResult| cell.samples.first().map_or(f64::INFINITY, |sample| sample.start_seconds);
        runs.sort_by(|one, other| start(one).total_cmp(&start(other)));
        let (samples, boots) = collect_samples(&runs, &criterion);
        let calibration = calibrate::calibrate(&samples, &options).map_err(|error| Error::Incomplete {
            what: format!("{}: {error}", criterion.metric),
            help: "all samples are in the run folder; `weighbridge format` shows them".to_owned(),
        })?;
        let incomplete = runs.iter().filter(|run| run.outcome.is_incomplete());
        let shortfalls = incomplete.map(|run| (run.cell.serial.to_string(), run.outcome.to_string())).collect();
        Ok(CalibrationCase { case, runs: runs.len(), boots, shortfalls, calibration })
    };
    let cases = cases.into_iter().map(case).collect::<Result<_, Error>>()?;
    Ok(CalibrationExperiment { samples_per_side: options.samples_per_side, criterion, cases, added: Vec::new() })
}

/// The samples of runs in order, and the number of distinct boots.
fn collect_samples(runs: &[&CellResult], criterion: &Criterion) -> (Vec<CalibrationSample>, usize) {
    let boots: BTreeSet<&str> = runs.iter().filter_map(|run| Some(run.provenance.get("boot")?.as_str())).collect();
    let boots: Vec<&str> = boots.into_iter().collect();
    let boot_of = |run: &CellResult| {
        let boot = run.provenance.get("boot").map_or("", String::as_str);
        boots.iter().position(|other| *other == boot).unwrap_or_default() as u32
    };
    let of_run = |(number, run): (u32, &&CellResult)| {
        let boot = boot_of(run);
        let counted = run.samples.iter().filter(|sample| sample.counted);
        let sample = counted.filter_map(move |sample| {
            let value = *sample.values.get(&criterion.metric)?;
            Some(CalibrationSample { boot, run: number, value, disturbed: !sample.disturbances.is_empty() })
        });
        sample.collect::<Vec<_>>()
    };
    ((0..).zip(runs).flat_map(of_run).collect(), boots.len())
}
