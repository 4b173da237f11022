//! `run` and `plan` with contention benches.

use std::path::Path;

use wb_contention::execute::{SequenceError, SequenceRequest, execute, require_runners};
use wb_contention::record::{SequenceHistory, read_history};
use wb_contention::sequence;
use wb_plan::Sampling;
use wb_record::{Invocation, RunFolder};
use wb_session::contention::WorkerRunners;
use wb_session::declare_secrets;
use wb_session::options::new_run_folder;
use wb_session::program::{current_program_hash, runtime};
use wb_session::worker_program::worker_program_hash;

use super::render;
use super::request::request;
use crate::cli::{PlanArgs, RUN_PREFIX, RunArgs};
use crate::commands::command_line::recorded_words;
use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

pub(crate) fn run_sequence(args: &RunArgs, console: &Console) -> Result<Exit, Error> {
    let words = &args.measurement.tests;
    let request = request(words, &args.contention, args.measurement.cells.sampling.attempt.seed)?;
    declare_secrets(&args.run_folder.secret_from).map_err(wb_session::SessionError::from)?;
    let path = args.run_folder.into.clone().unwrap_or_else(|| new_run_folder(RUN_PREFIX));
    let mut runners = WorkerRunners::local(&request)?;
    let run = RunFolder::create(&path)?;
    let is_runnable = read_history(&run)
        .map_err(Error::from)
        .and_then(|history| require_runners(&request, &history, &mut runners).map_err(Error::from));
    if let Err(error) = is_runnable {
        run.abandon();
        return Err(error);
    }
    run.add_invocation(invocation(args, &request)?)?;
    let mut printed = Ok(());
    let mut progress = |step: wb_contention::execute::SequenceProgress<'_>| {
        let reported = render::report(step, args.json, console);
        if printed.is_ok() {
            printed = reported;
        }
    };
    let results = runtime()?.block_on(async {
        let results = execute(request, &run, &mut runners, &mut progress).await;
        // Of two errors, that of the sequence is the cause.
        let closed = runners.close().await;
        let results = results.map_err(Error::from)?;
        closed?;
        Ok::<_, Error>(results)
    })?;
    printed?;
    if args.json {
        print_json(&results)?;
    }
    if !console.quiet {
        message!("run folder: {}", path.display());
    }
    Ok(Exit::Success)
}

fn invocation(args: &RunArgs, request: &SequenceRequest) -> Result<Invocation, Error> {
    let sampling = serde_json::to_value(Sampling::default()).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(Invocation {
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program_sha256: current_program_hash()?,
        agent_sha256: Some(worker_program_hash()?),
        command: recorded_words(),
        plan: args.measurement.tests.join(" "),
        plan_text: None,
        sampling,
        seed: request.seed,
        cells: Vec::new(),
        facts: Default::default(),
        hosts: Default::default(),
        metadata: args.run_folder.metadata.iter().cloned().collect(),
    })
}

pub(crate) fn plan_sequence(args: &PlanArgs, folder: Option<&Path>) -> Result<Exit, Error> {
    let seed = args.measurement.cells.sampling.attempt.seed;
    let mut request = request(&args.measurement.tests, &args.contention, seed)?;
    let history = match folder.filter(|folder| folder.exists()) {
        Some(folder) => read_history(&RunFolder::open(folder)?)?,
        None => SequenceHistory::default(),
    };
    request.seed = history.seed().unwrap_or(request.seed);
    let plan = sequence::plan(&request, &history).map_err(SequenceError::from)?;
    if args.json {
        print_json(&plan)?;
    } else {
        let lines: Vec<String> = plan.iter().flat_map(render::job_lines).collect();
        print_text(&(lines.join("\n") + "\n"))?;
    }
    Ok(Exit::Success)
}
