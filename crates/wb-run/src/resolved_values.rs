//! Values that a plan resolves from its machines (threads, sizes, instruction sets) stay the same for the whole run.
//!
//! The axes among them are part of a cell's name. A machine that has changed would therefore not contradict the earlier
//! samples: it would silently add a second cell beside the first.

use std::collections::BTreeSet;
use std::path::Path;

use wb_model::{CellId, DefinitionKey, Facts, ProfileName, WorkerName};
use wb_plan::{Plan, PlanWorkers};
use wb_record::{Invocation, JournalEvent, RunFolder};

use crate::RunError;

/// The workers to plan for in a folder that may have samples. `plan` expands the requested tests.
///
/// If earlier samples are of cells that only the recorded machines have, the recorded properties are used again, as
/// long as they differ in what varies without a change of the machine: its available memory. Fails if a machine has
/// changed.
pub fn keep_resolved_values<E>(
    folder: &Path,
    profile: &ProfileName,
    now: PlanWorkers,
    plan: impl Fn(&PlanWorkers) -> Result<Plan, E>,
) -> Result<PlanWorkers, RunError> {
    if !folder.join("run.json").is_file() {
        return Ok(now);
    }
    let run = RunFolder::open(folder)?;
    // The caller reports what is wrong with a plan for the machines as they are.
    let Ok(after) = plan(&now) else { return Ok(now) };
    // Planning for the recorded facts, too, shows whether a difference comes from the machine or from the request.
    let orphans = orphans(&run, &after)?;
    if orphans.is_empty() {
        return Ok(now);
    }
    let invocations = run.run_file()?.invocations;
    let of_profile = invocations.iter().rev().filter(|one| one.cells.iter().any(|cell| cell.profile == *profile));
    for invocation in of_profile {
        let recorded = with_recorded_facts(&now, invocation);
        let Ok(before) = plan(&recorded) else { continue };
        let known = identities(&before);
        let Some((cell, _)) = orphans.iter().find(|orphan| known.contains(orphan)) else { continue };
        let Some((worker, differences)) = first_difference(&recorded, &now) else { return Ok(recorded) };
        let is_in_its_place = |other: &&Identity| {
            !known.contains(*other) && (&other.0.test, &other.0.serial) == (&cell.test, &cell.serial)
        };
        let in_its_place = identities(&after).iter().find(is_in_its_place).map(|(other, _)| other.clone());
        return Err(RunError::ChangedMachine {
            worker,
            differences,
            in_its_place: Box::new(in_its_place.unwrap_or_else(|| cell.clone())),
            cell: Box::new(cell.clone()),
        });
    }
    Ok(now)
}

type Identity = (CellId, Option<DefinitionKey>);

fn identities(plan: &Plan) -> BTreeSet<Identity> {
    plan.cells.iter().map(|cell| (cell.id.clone(), cell.key.clone())).collect()
}

/// The cells with attempts that are of a test of this plan, but not in it.
fn orphans(run: &RunFolder, plan: &Plan) -> Result<BTreeSet<Identity>, RunError> {
    let planned = identities(plan);
    let serial = |cell: &CellId| (cell.profile.clone(), cell.test.clone(), cell.serial.to_string());
    let serials: BTreeSet<_> = plan.cells.iter().map(|cell| serial(&cell.id)).collect();
    let attempted = run.journal_lines()?.into_iter().filter_map(|line| match line.event {
        JournalEvent::AttemptEnded(ended) => Some((ended.cell, Some(ended.key))),
        _ => None,
    });
    Ok(attempted.filter(|cell| !planned.contains(cell) && serials.contains(&serial(&cell.0))).collect())
}

fn with_recorded_facts(now: &PlanWorkers, invocation: &Invocation) -> PlanWorkers {
    let mut workers = now.clone();
    for (name, facts) in &mut workers.workers {
        if let (Ok(facts), Some(recorded)) = (facts, invocation.facts.get(name)) {
            *facts = recorded.clone();
        }
    }
    workers
}

/// The first worker whose machine has changed, with the difference. A reboot or another kernel is no such change, since
/// no value is resolved from them.
fn first_difference(before: &PlanWorkers, now: &PlanWorkers) -> Option<(WorkerName, Vec<String>)> {
    before.workers.iter().zip(&now.workers).find_map(|((worker, before), (_, now))| {
        let (Ok(before), Ok(now)) = (before, now) else { return None };
        let same_boot = Facts { boot_id: now.boot_id.clone(), kernel: now.kernel.clone(), ..before.clone() };
        let differences = same_boot.differences(now);
        (!differences.is_empty()).then(|| (worker.clone(), differences))
    })
}
