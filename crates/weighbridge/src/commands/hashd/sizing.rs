//! `weighbridge hashd --find-params`: sizes the workload for this machine.

use std::path::{Path, PathBuf};

use wb_hashd::HashdParams;
use wb_hashd::sizing::{
    JournalError, Round, RoundOutcome, RoundPlan, SizingConfig, SizingError, SizingJournal, SizingLine, SizingRequest,
    SizingResult, Stage, find_params as run_sizing,
};
use wb_session::worker_program::worker_program;
use wb_sys::OutputTarget;

use super::child::ChildWorkload;
use super::output::format_bytes;
use super::read_params_file;
use crate::cli::OutputPath;
use crate::cli::hashd::HashdArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{check_file, print_text, write_file};
use crate::signals::listen_for_signals;

/// Finds the parameters, and writes them to `path`. Finished rounds are in a journal beside it, if it is a regular
/// file.
pub(super) fn find_params(args: &HashdArgs, path: &OutputPath, console: &Console) -> Result<Exit, Error> {
    check_file(path)?;
    let (mut journal, previous, rounds) = match journal_path(path)? {
        Some(path) => {
            let (journal, previous, rounds) = SizingJournal::open(&path)?;
            (Some(journal), previous, rounds)
        }
        None => Default::default(),
    };
    let found = find_recorded(args, path, console, journal.as_mut(), (previous, rounds));
    if let (Err(_), Some(journal)) = (&found, journal) {
        journal.remove_without_rounds()?;
    }
    found
}

/// Finds the parameters after the configuration and the rounds of a journal.
fn find_recorded(
    args: &HashdArgs,
    path: &OutputPath,
    console: &Console,
    mut journal: Option<&mut SizingJournal>,
    (previous, rounds): (Option<SizingConfig>, Vec<Round>),
) -> Result<Exit, Error> {
    let is_cancelled = listen_for_signals(|| ());
    let has_journal = journal.is_some();
    let journal_path = journal.as_ref().map_or(path.as_path(), |journal| journal.path()).to_owned();
    let mut record = |line: &SizingLine| journal.as_mut().map_or(Ok(()), |journal| journal.append(line));
    let config = resume(requested_config(args)?, previous, &journal_path, |config| {
        record(&SizingLine::Config(Box::new(config.clone())))
    })?;
    let output = RoundOutput { config: &config, json: args.json, quiet: console.quiet };
    for round in &rounds {
        output.print(round)?;
    }
    let workload = ChildWorkload::new(config.clone(), worker_program()?, is_cancelled);
    let result =
        run(&config, rounds, workload, &output, |round| Ok(record(&SizingLine::Round(Box::new(round.clone())))?));
    let result = match result {
        Err(Error::Sizing(SizingError::Cancelled)) => return Ok(Exit::Interrupted),
        result => result?,
    };
    write_file(path, &result.params_file()?)?;
    output.print_result(&result)?;
    if !console.quiet && has_journal {
        crate::console::message!(
            "`weighbridge hashd --params {path} --memory {}` runs with these parameters",
            result.memory
        );
    }
    Ok(Exit::Success)
}

/// The journal beside a regular file; output to a pipe or a device cannot be resumed.
fn journal_path(path: &OutputPath) -> Result<Option<PathBuf>, Error> {
    let target = OutputTarget::new(path.as_path()).map_err(Error::output(path))?;
    let mut name = path.as_path().as_os_str().to_owned();
    name.push(".journal");
    Ok(matches!(target, OutputTarget::File(_)).then(|| name.into()))
}

/// Finds parameters with this program's `exec hashd`; prints configuration, finished rounds and result as JSON lines.
pub(crate) fn exec(request: SizingRequest, program: PathBuf) -> Result<Exit, Error> {
    let is_cancelled = listen_for_signals(|| ());
    let config = request.config.resolve()?;
    let output = RoundOutput { config: &config, json: true, quiet: true };
    output.print_line(&SizingLine::Config(Box::new(config.clone())))?;
    let workload = ChildWorkload::new(config.clone(), program, is_cancelled);
    match run(&config, request.rounds, workload, &output, |_| Ok(())) {
        Err(Error::Sizing(SizingError::Cancelled)) => Ok(Exit::Interrupted),
        result => output.print_result(&result?).map(|()| Exit::Success),
    }
}

fn run(
    config: &SizingConfig,
    rounds: Vec<Round>,
    mut workload: ChildWorkload,
    output: &RoundOutput<'_>,
    mut record: impl FnMut(&Round) -> Result<(), Error>,
) -> Result<SizingResult, Error> {
    let on_round = |round: &Round| {
        record(round)?;
        output.print(round)
    };
    run_sizing(config, rounds, &mut workload, |plan| output.print_start(plan), on_round)
}

fn requested_config(args: &HashdArgs) -> Result<SizingConfig, Error> {
    let (_, params) = read_params_file(args)?;
    Ok(SizingConfig {
        params: HashdParams {
            lat_target: args.lat_target.unwrap_or(params.lat_target),
            fake_cpu_load: args.fake_cpu_load || params.fake_cpu_load,
            ..params
        },
        hash_size: args.hash_size,
        chunk_pages: args.chunk_pages,
        rps_max: args.rps_max,
        memory: args.memory,
        dir: args.dir.clone(),
        compressibility: args.compressibility,
        seed: args.seed,
        grain: args.grain,
        window_scale: args.window_scale,
        ..SizingConfig::default()
    })
}

/// The configuration of the journal, if it is the requested one; otherwise the requested one, which is recorded. What
/// was not requested is as it was found when the journal was begun.
fn resume(
    requested: SizingConfig,
    previous: Option<SizingConfig>,
    journal: &Path,
    record: impl FnOnce(&SizingConfig) -> Result<(), JournalError>,
) -> Result<SizingConfig, Error> {
    let Some(previous) = previous else {
        let config = requested.resolve()?;
        record(&config)?;
        return Ok(config);
    };
    let memory = requested.memory.or(previous.memory);
    let rps_max = requested.rps_max.or(previous.rps_max);
    if (SizingConfig { memory, rps_max, ..requested }) == previous {
        Ok(previous)
    } else {
        Err(JournalError::OtherConfig { path: journal.to_owned() }.into())
    }
}

struct RoundOutput<'a> {
    config: &'a SizingConfig,
    json: bool,
    quiet: bool,
}

impl RoundOutput<'_> {
    fn print_start(&self, plan: &RoundPlan) {
        if !self.quiet && !self.json {
            crate::console::message!("measuring {}", self.describe(plan));
        }
    }

    fn print(&self, round: &Round) -> Result<(), Error> {
        if self.json {
            return self.print_line(&SizingLine::Round(Box::new(round.clone())));
        }
        print(&format!("{}\n", self.format_round(round)))
    }

    fn print_result(&self, result: &SizingResult) -> Result<(), Error> {
        if self.json {
            return self.print_line(&SizingLine::Result(Box::new(result.clone())));
        }
        print(&format_result(result))
    }

    fn print_line(&self, line: &SizingLine) -> Result<(), Error> {
        print(&(serde_json::to_string(line).map_err(|error| Error::Internal(error.to_string()))? + "\n"))
    }

    fn format_round(&self, round: &Round) -> String {
        let outcome = match &round.outcome {
            RoundOutcome::Measured { rps, latency, is_converged } => {
                let of = round.plan.rps_max.map(|max| format!(" ({:.0} %)", rps / max * 100.0)).unwrap_or_default();
                let note = if *is_converged { "" } else { ", not converged" };
                format!("{rps:.1} requests/s{of}, latency {:.1} ms{note}", latency * 1e3)
            }
            RoundOutcome::DoesNotFit { required, available } => {
                let (required, available) = (format_bytes(*required), format_bytes(*available));
                format!("not run: {required} of anonymous memory, of which {available} fit")
            }
            RoundOutcome::Killed {} => "killed: out of memory".to_owned(),
        };
        let marks: String = round.disturbance.iter().map(|mark| format!("; disturbed: {mark}")).collect();
        format!("{}: {outcome}; {:.0} s{marks}", self.describe(&round.plan), round.seconds)
    }

    fn describe(&self, plan: &RoundPlan) -> String {
        let memory = self.config.memory.map_or(0, |memory| memory.0);
        let footprint = format_bytes((memory as f64 * plan.mem_frac) as u64);
        match plan.stage {
            Stage::HashSize => format!("hash size {}", format_bytes(plan.hash_size.0)),
            Stage::RpsMax => "saturation".to_owned(),
            Stage::MemoryUp => format!("footprint {footprint}, growing"),
            Stage::MemoryBisect => format!("footprint {footprint}, bisecting"),
            Stage::MemoryVerify => format!("footprint {footprint}, verifying"),
            Stage::MemoryRefine => format!("footprint {footprint}, refining"),
        }
    }
}

fn format_result(result: &SizingResult) -> String {
    let SizingResult { params, footprint, memory, .. } = result;
    let mut text = format!(
        "hash size {}, chunks of {} pages, {:.1} requests/s, footprint {} (mem-frac {:.4} of {})\n",
        format_bytes(params.file_size_mean.0),
        params.chunk_pages,
        params.rps_max.unwrap_or(0.0),
        format_bytes(*footprint),
        params.mem_frac,
        format_bytes(*memory),
    );
    text += &format!("{} rounds in {:.0} s", result.rounds, result.seconds);
    if result.repeated > 0 || result.disturbed > 0 {
        text += &format!("; {} disturbed and repeated, {} disturbed and used", result.repeated, result.disturbed);
    }
    if result.is_limited_by_memory {
        text += "; the whole footprint was sustained: --memory limits it";
    }
    text + "\n"
}

/// A reader that is gone does not need the rest, but the journal does.
fn print(text: &str) -> Result<(), Error> {
    print_text(text)
}
