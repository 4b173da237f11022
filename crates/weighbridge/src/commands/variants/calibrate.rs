//! `weighbridge calibrate`.

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

/// How often a comparison of what does not differ may say that it does, in percent: what `compare` is held to.
const ERROR_RATE: f64 = 5.0;

/// Holds a system against itself.
pub(crate) fn calibrate(args: &CalibrateArgs, console: &Console) -> Result<Exit, Error> {
    let asked = build_request(args)?;
    let folder = run_folder(&args.single_test.run_folder, "weighbridge-calibrate");
    let mut asks = None;
    let mut measuring = MeasureSession::new(
        &folder,
        &args.single_test.run_folder,
        &asked,
        &args.single_test.hosts,
        &args.single_test.preparation,
    )?;
    measuring.single_profile_command = Some("calibrate");
    require_same_plan(&folder, &asked)?;
    let measured = measuring.run(console, |workers, named| {
        let plan = plan_runs(args, &asked, workers, named)?;
        asks = Some(build_criterion(&asked, &plan, args.single_test.threshold, ERROR_RATE)?);
        Ok(plan)
    })?;
    let question = asks.ok_or_else(|| Error::Internal("no plan was made".to_owned()))?;
    let mut told = evaluate(&measured.study, question, args)?;
    told.added = last_entry_serials(&RunFolder::open(&folder)?.journal_lines()?);
    save_and_print(&Experiment::Calibration(told), &folder, &args.single_test, console)?;
    Ok(measured.exit().unwrap_or(Exit::Success))
}

/// The test, once for each run.
fn build_request(args: &CalibrateArgs) -> Result<MeasureRequest, Error> {
    let mut asked = resolve_single_test(&args.single_test)?;
    asked.plan(None, &localhost())?;
    let run = |request: &Request, number: u16| {
        let name = format!("run-{number:03}");
        let id = TestName::new(&name).unwrap_or_else(|_| unreachable!("`{name}` is a name"));
        Request { id: Some(id), ..request.clone() }
    };
    asked.requests = asked.requests.iter().flat_map(|one| (0..args.runs).map(move |at| run(one, at))).collect();
    asked.name = format!("calibrate {} ({} samples a side)", asked.name, args.samples);
    asked.sampling.order = SamplingOrder::Sequential;
    asked.sampling.min_samples = 2 * usize::from(args.samples);
    asked.sampling.max_samples = asked.sampling.min_samples;
    Ok(asked)
}

/// Its cells, each of exactly so many samples.
fn plan_runs(
    args: &CalibrateArgs,
    asked: &MeasureRequest,
    workers: &PlanWorkers,
    named: &NamedProfile,
) -> Result<Plan, Error> {
    let mut plan = asked.plan(Some(workers), named)?;
    let samples = 2 * usize::from(args.samples);
    for cell in &mut plan.cells {
        cell.rule = SamplingRule::External { min_samples: samples, max_samples: samples };
    }
    Ok(plan)
}

/// The serials with attempts in the last entry of a run; none where no earlier entry has any.
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

/// What came of it, from all that the folder has.
fn evaluate(study: &Study, question: Criterion, args: &CalibrateArgs) -> Result<CalibrationExperiment, Error> {
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
        let began = |cell: &&CellResult| cell.samples.first().map_or(f64::INFINITY, |sample| sample.start_seconds);
        runs.sort_by(|one, other| began(one).total_cmp(&began(other)));
        let (samples, boots) = collect_samples(&runs, &question);
        let calibration = calibrate::calibrate(&samples, &options).map_err(|bad| Error::Incomplete {
            what: format!("{}: {bad}", question.metric),
            help: "all samples are in the run folder; `weighbridge format` shows them".to_owned(),
        })?;
        let short = runs.iter().filter(|run| run.outcome.is_incomplete());
        let shortfalls = short.map(|run| (run.cell.serial.to_string(), run.outcome.to_string())).collect();
        Ok(CalibrationCase { case, runs: runs.len(), boots, shortfalls, calibration })
    };
    let cases = cases.into_iter().map(case).collect::<Result<_, Error>>()?;
    Ok(CalibrationExperiment { samples_per_side: options.samples_per_side, question, cases, added: Vec::new() })
}

/// The samples of runs in their order, and of how many boots they are.
fn collect_samples(runs: &[&CellResult], question: &Criterion) -> (Vec<CalibrationSample>, usize) {
    let boots: BTreeSet<&str> = runs.iter().filter_map(|run| Some(run.provenance.get("boot")?.as_str())).collect();
    let boots: Vec<&str> = boots.into_iter().collect();
    let boot_of = |run: &CellResult| {
        let boot = run.provenance.get("boot").map_or("", String::as_str);
        boots.iter().position(|known| *known == boot).unwrap_or_default() as u32
    };
    let of_run = |(number, run): (u32, &&CellResult)| {
        let boot = boot_of(run);
        let counted = run.samples.iter().filter(|sample| sample.counted);
        let sample = counted.filter_map(move |sample| {
            let value = *sample.values.get(&question.metric)?;
            Some(CalibrationSample { boot, run: number, value, disturbed: !sample.disturbances.is_empty() })
        });
        sample.collect::<Vec<_>>()
    };
    ((0..).zip(runs).flat_map(of_run).collect(), boots.len())
}
