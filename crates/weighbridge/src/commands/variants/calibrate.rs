//! `weighbridge calibrate`.

use std::collections::{BTreeMap, BTreeSet};

use wb_compare::calibrate::{self, Options, Sample};
use wb_compare::variants::{Calibrated, CalibratedCase, Held, Question};
use wb_model::TestName;
use wb_plan::{Order, Plan, Request, Workers};
use wb_profile::Named;
use wb_record::{Event, Line, RunFolder};
use wb_stats::Rule;
use wb_study::Study;
use wb_study::result::CellResult;

use super::question::question;
use super::tell;
use crate::cli::variants::CalibrateArgs;
use crate::commands::crew::localhost;
use crate::commands::measure::{Measuring, folder, require_same};
use crate::commands::what::{Asked, asked_one};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// How often a comparison of what does not differ may say that it does, in percent: what `compare` is held to.
const ERROR_RATE: f64 = 5.0;

/// Holds a system against itself.
pub(crate) fn calibrate(args: &CalibrateArgs, console: &Console) -> Result<Exit, Error> {
    let asked = asked(args)?;
    let folder = folder(&args.one.into, "weighbridge-calibrate");
    let mut asks = None;
    let mut measuring = Measuring::new(&folder, &args.one.into, &asked, &args.one.hosts, &args.one.ready)?;
    measuring.one_state = Some("calibrate");
    require_same(&folder, &asked)?;
    let measured = measuring.carry_out(console, |workers, named| {
        let plan = plan(args, &asked, workers, named)?;
        asks = Some(question(&asked, &plan, args.one.threshold, ERROR_RATE)?);
        Ok(plan)
    })?;
    let question = asks.ok_or_else(|| Error::Kernel("no plan was made".to_owned()))?;
    let mut told = told(&measured.study, question, args)?;
    told.added = added(&RunFolder::open(&folder)?.lines()?);
    tell(&Held::Calibrated(told), &folder, &args.one, console)?;
    Ok(measured.exit().unwrap_or(Exit::Fine))
}

/// The test, once for each run.
fn asked(args: &CalibrateArgs) -> Result<Asked, Error> {
    let mut asked = asked_one(&args.one)?;
    asked.plan(None, &localhost())?;
    let run = |request: &Request, number: u16| {
        let name = format!("run-{number:03}");
        let id = TestName::new(&name).unwrap_or_else(|_| unreachable!("`{name}` is a name"));
        Request { id: Some(id), ..request.clone() }
    };
    asked.requests = asked.requests.iter().flat_map(|one| (0..args.runs).map(move |at| run(one, at))).collect();
    asked.name = format!("calibrate {} ({} samples a side)", asked.name, args.samples);
    asked.sampling.order = Order::Sequential;
    asked.sampling.min_samples = 2 * usize::from(args.samples);
    asked.sampling.max_samples = asked.sampling.min_samples;
    Ok(asked)
}

/// Its cells, each of exactly so many samples.
fn plan(args: &CalibrateArgs, asked: &Asked, workers: &Workers, named: &Named) -> Result<Plan, Error> {
    let mut plan = asked.plan(Some(workers), named)?;
    let samples = 2 * usize::from(args.samples);
    for cell in &mut plan.cells {
        cell.rule = Rule::Compared { min_samples: samples, max_samples: samples };
    }
    Ok(plan)
}

/// The serials with attempts in the last entry of a run; none where no earlier entry has any.
fn added(lines: &[Line]) -> Vec<String> {
    let mut entries: Vec<BTreeSet<String>> = Vec::new();
    for line in lines {
        match &line.event {
            Event::EntryStarted { .. } => entries.push(BTreeSet::new()),
            Event::AttemptEnded(ended) => {
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
fn told(study: &Study, question: Question, args: &CalibrateArgs) -> Result<Calibrated, Error> {
    let options = Options { each: usize::from(args.samples), threshold: args.one.threshold, rate: ERROR_RATE / 100.0 };
    let mut cases: BTreeMap<String, Vec<&CellResult>> = BTreeMap::new();
    for cell in &study.cells {
        cases.entry(cell.cell.case.to_string()).or_default().push(cell);
    }
    let case = |(case, mut runs): (String, Vec<&CellResult>)| {
        let began = |cell: &&CellResult| cell.samples.first().map_or(f64::INFINITY, |sample| sample.at);
        runs.sort_by(|one, other| began(one).total_cmp(&began(other)));
        let (samples, boots) = samples(&runs, &question);
        let calibration = calibrate::calibrate(&samples, &options).map_err(|bad| Error::FellShort {
            what: format!("{}: {bad}", question.metric),
            help: "all samples are in the run folder; `weighbridge format` shows them".to_owned(),
        })?;
        let short = runs.iter().filter(|run| run.outcome.falls_short());
        let shortfalls = short.map(|run| (run.cell.serial.to_string(), run.outcome.to_string())).collect();
        Ok(CalibratedCase { case, runs: runs.len(), boots, shortfalls, calibration })
    };
    let cases = cases.into_iter().map(case).collect::<Result<_, Error>>()?;
    Ok(Calibrated { samples_each: options.each, question, cases, added: Vec::new() })
}

/// The samples of runs in their order, and of how many boots they are.
fn samples(runs: &[&CellResult], question: &Question) -> (Vec<Sample>, usize) {
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
            Some(Sample { boot, run: number, value, disturbed: !sample.disturbances.is_empty() })
        });
        sample.collect::<Vec<_>>()
    };
    ((0..).zip(runs).flat_map(of_run).collect(), boots.len())
}
