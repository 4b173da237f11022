//! `weighbridge merge`: one result of several.

use std::path::Path;

use wb_contention::execute::read_results;
use wb_contention::merge::{
    MergeOptions, MergeSource, MergeSources, SourceReport, merge as merge_results, write_merged,
};
use wb_contention::record::read_history;
use wb_contention::resctl_bench;
use wb_plan::Sampling;
use wb_record::{Invocation, RunFolder};
use wb_session::program::current_program_hash;

use crate::cli::contention::MergeArgs;
use crate::commands::command_line::recorded_words;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::print_text;

pub(crate) fn merge(args: &MergeArgs, folder: Option<&Path>) -> Result<Exit, Error> {
    let Some(folder) = folder else {
        return Err(Error::Usage {
            what: "missing folder to write the merged results to".to_owned(),
            help: "name a new one: `weighbridge -r MERGED merge RUN…`".to_owned(),
        });
    };
    let mut sources = MergeSources::default();
    for path in &args.runs {
        let (results, missing) = if path.is_file() { read_file(path)? } else { read_run(path)? };
        if !results.iter().any(MergeSource::is_mergeable) {
            let rejection = Some(missing);
            sources.without_result.push(SourceReport { name: path.display().to_string(), rejection });
        }
        sources.results.extend(results);
    }
    let merged = merge_results(
        sources,
        MergeOptions {
            by_id: args.by_id,
            ignore_versions: args.ignore_versions,
            ignore_requirements: args.ignore_sysreqs,
            multiple: args.multiple,
        },
    )?;
    let run = RunFolder::create(folder)?;
    run.add_invocation(Invocation {
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program_sha256: current_program_hash()?,
        agent_sha256: None,
        command: recorded_words(),
        plan: "merge".to_owned(),
        plan_text: None,
        sampling: serde_json::to_value(Sampling::default()).map_err(|error| Error::Internal(error.to_string()))?,
        seed: 0,
        cells: Vec::new(),
        facts: Default::default(),
        hosts: Default::default(),
        metadata: Default::default(),
    })?;
    write_merged(&run, &merged)?;
    merged.iter().try_for_each(|merged| print_text(&merged.report.to_string()))?;
    Ok(Exit::Success)
}

/// The results of a file of resctl-bench, and why none can be merged if none can.
fn read_file(path: &Path) -> Result<(Vec<MergeSource>, String), Error> {
    let bytes = std::fs::read(path).map_err(Error::file("read", path))?;
    let name = path.display().to_string();
    let results = resctl_bench::read(&name, &bytes).map_err(|error| Error::Incomplete {
        what: format!("{name}: {error}"),
        help: "name run folders, and result files of resctl-bench (`result.json`, `result.json.gz`)".to_owned(),
    })?;
    Ok((results, NO_RESULT.to_owned()))
}

/// The results of a run, and why none can be merged if none can.
fn read_run(path: &Path) -> Result<(Vec<MergeSource>, String), Error> {
    let run = RunFolder::open(path)?;
    let history = read_history(&run)?;
    let name = path.display().to_string();
    let results = read_results(&run, &history)?.into_iter().map(|result| {
        let times = history.times(&result.instance).map(|(start, end)| (start.to_owned(), end.to_owned()));
        MergeSource { name: name.clone(), result, times }
    });
    let unfinished = history.unfinished().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let missing = if unfinished.is_empty() { NO_RESULT.to_owned() } else { unfinished };
    Ok((results.collect(), missing))
}

const NO_RESULT: &str = "no result of iocost-tune";
