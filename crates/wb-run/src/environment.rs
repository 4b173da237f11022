//! The workers' environments, before an entry and after it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Serialize;
use wb_agent::WorkerError;
use wb_model::{ProfileName, WorkerName};
use wb_plan::Plan;
use wb_record::{RecordError, RunFolder, files};
use wb_sys::environment::tools::VersionQueries;
use wb_sys::system::COMPILERS;
use wb_tests::Registry;

use crate::RunError;
use crate::worker_pool::WorkerPool;

/// Records what the workers are like at this moment: `environment/world-ENTRY-MOMENT.json` of the first,
/// `…-MOMENT@WORKER.json` of the others, and of the hosts that guests run upon. The compilers are recorded whatever is
/// measured: code that a test builds depends on them. Returns the workers that were found lost, each with the reason.
pub async fn record(
    run: &RunFolder,
    entry: u32,
    moment: &str,
    plan: &Plan,
    registry: &Registry,
    crew: &WorkerPool,
    lost: &BTreeSet<WorkerName>,
) -> Result<Vec<(WorkerName, String)>, RunError> {
    let needed =
        plan.cells.iter().filter_map(|cell| Some(registry.test(cell.id.test.as_str())?.requires(&cell.params)));
    let mut programs: VersionQueries = needed.flatten().map(|need| (need.program, need.version)).collect();
    for (compiler, version) in COMPILERS {
        programs.entry(compiler.to_owned()).or_insert_with(|| vec![version.to_owned()]);
    }
    let mut found_lost = Vec::new();
    for (at, member) in crew.workers.iter().chain(&crew.vm_hosts).enumerate() {
        let name = member.worker.name();
        if lost.contains(name) {
            continue;
        }
        let environment = match member.worker.environment(programs.clone()).await {
            Err(WorkerError::Lost { worker, why }) => {
                found_lost.push((worker, why));
                continue;
            }
            other => other?,
        };
        let of = if at == 0 { String::new() } else { format!("@{name}") };
        write(run, &format!("world-{entry}-{moment}{of}"), &environment)?;
    }
    Ok(found_lost)
}

/// Records what hosts were made to be: `environment/profile-ENTRY.json`.
pub(crate) fn record_states(run: &RunFolder, entry: u32, states: &[serde_json::Value]) -> Result<(), RunError> {
    if states.is_empty() { Ok(()) } else { write(run, &format!("profile-{entry}"), &states) }
}

/// Keeps what the consoles of guests said while they measured in a profile: `environment/console-ENTRY@GUEST.log`.
///
/// # Errors
/// When the run folder cannot be read or written.
pub fn record_consoles(
    folder: &Path,
    profile: &ProfileName,
    consoles: &[(WorkerName, Vec<u8>)],
) -> Result<(), RecordError> {
    // Where nothing was planned for them, there is nothing to keep them with.
    if consoles.is_empty() || !folder.join("run.json").is_file() {
        return Ok(());
    }
    let run = RunFolder::open(folder)?;
    let head = run.run_file()?;
    let Some((entry, _)) = head.last_entry_for(profile) else { return Ok(()) };
    for (guest, said) in consoles {
        files::write_atomic(&run.path().join(format!("environment/console-{entry}@{guest}.log")), said)?;
    }
    Ok(())
}

fn write(run: &RunFolder, name: &str, what: &impl Serialize) -> Result<(), RunError> {
    let path = run.environment_path(name);
    let folder = path.parent().unwrap_or(run.path());
    let unmade = |source| RecordError::Io { operation: "create", path: folder.to_owned(), source };
    fs::create_dir_all(folder).map_err(unmade)?;
    Ok(files::write_json(&path, what)?)
}
