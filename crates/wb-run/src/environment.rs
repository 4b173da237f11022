//! Records the environments of the workers before and after an invocation.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;
use wb_agent::WorkerError;
use wb_model::{ProfileName, WorkerName, with_worker};
use wb_record::{RecordError, RunFolder, files};
use wb_sys::environment::tools::VersionQueries;
use wb_sys::system::COMPILERS;

use crate::RunError;
use crate::active_cell::ActiveCell;
use crate::attempt::RunContext;
use crate::worker_pool::{PooledWorker, WorkerPool};

/// Records the current environments of the workers: `environment/world-INVOCATION-MOMENT.json` for the first,
/// `…-MOMENT@WORKER.json` for the others and for the hosts of guests. Compiler versions are always recorded, because
/// code that a test builds depends on them. Returns the workers found to be lost, each with the reason.
pub async fn record(
    run: &RunFolder,
    invocation: u32,
    moment: &str,
    cells: &[ActiveCell],
    pool: &WorkerPool,
    lost: &BTreeSet<WorkerName>,
) -> Result<Vec<(WorkerName, String)>, RunError> {
    let requirements = cells.iter().flat_map(|cell| cell.test_cell.requires());
    let mut programs: VersionQueries = requirements.map(|need| (need.program, need.version)).collect();
    for (compiler, version) in COMPILERS {
        programs.entry(compiler.to_owned()).or_insert_with(|| vec![version.to_owned()]);
    }
    let mut found_lost = Vec::new();
    for (index, member) in pool.workers.iter().chain(&pool.vm_hosts).enumerate() {
        let name = member.worker.name();
        if lost.contains(name) {
            continue;
        }
        let environment = match member.worker.environment(programs.clone()).await {
            Err(WorkerError::Lost { worker, reason }) => {
                found_lost.push((worker, reason));
                continue;
            }
            other => other?,
        };
        let file = with_worker(&format!("world-{invocation}-{moment}"), (index > 0).then_some(name));
        write(run, &file, &environment)?;
    }
    Ok(found_lost)
}

impl RunContext {
    /// The workers whose machines have other properties now than when the plan was made, with the differences. Lost
    /// workers are left out.
    pub(crate) async fn changed_facts(&self) -> Result<Vec<(WorkerName, Vec<String>)>, RunError> {
        let mut changed = Vec::new();
        for PooledWorker { worker, facts, .. } in &self.pool.workers {
            if self.lost.contains(worker.name()) {
                continue;
            }
            let now = match worker.facts().await {
                Err(WorkerError::Lost { .. }) => continue,
                other => other?,
            };
            let differences = facts.differences(&now);
            if !differences.is_empty() {
                changed.push((worker.name().clone(), differences));
            }
        }
        Ok(changed)
    }
}

/// Records the profile states of the hosts: `environment/profile-INVOCATION.json`.
pub(crate) fn record_states(run: &RunFolder, invocation: u32, states: &[serde_json::Value]) -> Result<(), RunError> {
    if states.is_empty() { Ok(()) } else { write(run, &format!("profile-{invocation}"), &states) }
}

/// Records the console output of guests in a profile: `environment/console-INVOCATION@GUEST.log`.
pub fn record_consoles(
    folder: &Path,
    profile: &ProfileName,
    consoles: &[(WorkerName, Vec<u8>)],
) -> Result<(), RecordError> {
    // Without a run there is no invocation to record them with.
    if consoles.is_empty() || !folder.join("run.json").is_file() {
        return Ok(());
    }
    let run = RunFolder::open(folder)?;
    let run_file = run.run_file()?;
    let Some((invocation, _)) = run_file.last_invocation_for(profile) else { return Ok(()) };
    for (guest, output) in consoles {
        files::write_atomic(&run.path().join(format!("environment/console-{invocation}@{guest}.log")), output)?;
    }
    Ok(())
}

fn write(run: &RunFolder, name: &str, value: &impl Serialize) -> Result<(), RunError> {
    run.require_in_place()?;
    Ok(run.write_environment(name, value)?)
}
