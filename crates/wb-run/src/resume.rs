//! Resuming a run folder: complete cells are kept, cells with another definition are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use wb_model::param::differences;
use wb_model::{Facts, Nanos, ProfileName, Roles, WorkerName, pluralize};
use wb_plan::{Plan, PlanWorkers, Sampling};
use wb_profile::AppliedProfile;
use wb_record::{History, Invocation, RecordError, RunFolder};
use wb_test::Registry;

use crate::RunError;
use crate::active_cell::{ActiveCell, NextStep};
use crate::worker_pool::{PooledWorker, WorkerPool};

/// Refuses a plan with a cell that the folder has with another key.
pub fn check_keys(plan: &Plan, run: &RunFolder, history: &History) -> Result<(), RunError> {
    for cell in &plan.cells {
        let Some(key) = &cell.key else {
            let open = cell.unresolved.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(RunError::OpenValues { cell: Box::new(cell.id.clone()), open });
        };
        if let Some(before) = history.other_key(&cell.id, key) {
            let definitions = run.definitions(&cell.id)?;
            let old = definitions.of(&cell.id);
            let mut differences = old.map(|old| differences(&old.params, &cell.params)).unwrap_or_default();
            if let Some(old) = old.filter(|old| old.version != cell.version) {
                differences.push(format!("measurement version: {} before, {} now", old.version, cell.version));
            }
            return Err(RunError::Redefined { cell: Box::new(cell.id.clone()), before: before.clone(), differences });
        }
    }
    Ok(())
}

/// Fills in the recorded facts of unreachable workers from the last invocation of a profile in a folder. A host that
/// had guests is replaced by them.
pub fn restore_facts(folder: &Path, profile: &ProfileName, workers: &mut PlanWorkers) -> Result<(), RecordError> {
    let absent: Vec<WorkerName> =
        workers.workers.iter().filter(|(_, facts)| facts.is_err()).map(|(name, _)| name.clone()).collect();
    if absent.is_empty() || !folder.join("run.json").is_file() {
        return Ok(());
    }
    let run = RunFolder::open(folder)?;
    let invocations = run.run_file()?.invocations;
    let has_profile = |invocation: &Invocation| invocation.cells.iter().any(|cell| cell.profile == *profile);
    for name in absent {
        for (number, invocation) in
            invocations.iter().enumerate().rev().filter(|(_, invocation)| has_profile(invocation))
        {
            if let Some(facts) = invocation.facts.get(&name) {
                workers.recorded.insert(name, facts.clone());
                break;
            }
            let guests = guests_of(&run, number, invocation, &name)?;
            if !guests.is_empty() {
                workers.replace_unreachable(&name, guests);
                break;
            }
        }
    }
    Ok(())
}

/// Returns the guests that measured in place of a host in an invocation, with their facts.
fn guests_of(
    run: &RunFolder,
    number: usize,
    invocation: &Invocation,
    host: &WorkerName,
) -> Result<BTreeMap<WorkerName, Facts>, RecordError> {
    let states: Option<Vec<AppliedProfile>> = run.read_json(&run.environment_path(&format!("profile-{number}")))?;
    let guests = states.into_iter().flatten().filter(|state| state.host == *host).flat_map(|state| state.guests);
    Ok(guests.filter_map(|guest| Some((guest.name.clone(), invocation.facts.get(&guest.name)?.clone()))).collect())
}

/// Whether every cell of a plan is complete in a folder, judged only by its records. A cell that could not be measured
/// is not complete.
pub fn is_complete(folder: &Path, plan: &Plan, registry: &Registry) -> Result<bool, RunError> {
    let run = RunFolder::open(folder)?;
    let history = History::new(&run, &run.journal_lines()?);
    for cell in &plan.cells {
        let Some(test_cell) = registry.test_cell(cell.id.test.as_str(), &cell.params) else { return Ok(false) };
        let definitions = run.definitions(&cell.id)?;
        let recorded = definitions.of(&cell.id).filter(|recorded| Some(&recorded.key) == cell.key.as_ref());
        let Some(definition) = recorded.cloned() else { return Ok(false) };
        let measuring = ActiveCell::new(cell.clone(), definition, test_cell, &history);
        if matches!(measuring.next(&plan.sampling), NextStep::Attempt(..)) {
            return Ok(false);
        }
    }
    Ok(!plan.cells.is_empty())
}

/// Refuses a cell that has samples from different machines, or with a different topology of roles: they would not be
/// comparable. The names of the workers do not matter.
pub fn check_machines(
    cell: &ActiveCell,
    run: &RunFolder,
    earlier: &[Invocation],
    pool: &WorkerPool,
) -> Result<(), RunError> {
    let id = &cell.planned.id;
    let definitions = run.definitions(id)?;
    let Some(before) = definitions.of(id).filter(|_| !cell.evaluated.is_empty()) else { return Ok(()) };
    let (before, now) = (&before.roles, &cell.definition.roles);
    let other_workers = || {
        let [before, now] = [before, now].map(|roles| format_roles(roles));
        RunError::OtherWorkers { cell: Box::new(id.clone()), before, now }
    };
    if !before.is_empty() && !now.is_empty() && topology(before) != topology(now) {
        return Err(other_workers());
    }
    let facts = pool.workers.iter().map(|member| (member.worker.name().clone(), Facts::clone(&member.facts))).collect();
    // The last invocation in which all of them were reachable.
    let had_all = |invocation: &&Invocation| {
        invocation.cells.contains(id)
            && machine_facts(before, &invocation.facts).iter().all(|(_, facts)| facts.is_some())
    };
    let Some(invocation) = earlier.iter().rev().find(had_all) else { return Ok(()) };
    let [old_machines, new_machines] = [machine_facts(before, &invocation.facts), machine_facts(now, &facts)];
    let other = old_machines.iter().zip(&new_machines).find(|((_, one), (_, other))| !is_same_machine(*one, *other));
    match other {
        None if old_machines.len() == new_machines.len() => Ok(()),
        Some(((old_worker, Some(before)), (worker, Some(now)))) if old_worker == worker => {
            Err(RunError::OtherMachine {
                cell: Box::new(id.clone()),
                worker: (*worker).clone(),
                before: format_machine(before),
                now: format_machine(now),
            })
        }
        _ => Err(other_workers()),
    }
}

/// The workers of role assignments, each once.
fn distinct_workers(roles: &[Roles]) -> Vec<&WorkerName> {
    let mut names = Vec::new();
    for name in roles.iter().flat_map(Roles::workers) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Which worker has which role, with numbers in place of names.
fn topology(roles: &[Roles]) -> Vec<Vec<Option<usize>>> {
    let distinct = distinct_workers(roles);
    let number = |name: &WorkerName| distinct.iter().position(|other| *other == name);
    roles.iter().map(|assignment| assignment.workers().map(number).collect()).collect()
}

/// Returns the workers of role assignments without duplicates, with their facts if known.
fn machine_facts<'a>(
    roles: &'a [Roles],
    facts: &'a BTreeMap<WorkerName, Facts>,
) -> Vec<(WorkerName, Option<&'a Facts>)> {
    let mut names: Vec<WorkerName> = distinct_workers(roles).into_iter().cloned().collect();
    if names.is_empty() {
        names.push(WorkerName::local());
    }
    names.into_iter().map(|name| (name.clone(), facts.get(&name))).collect()
}

/// Whether two workers are the same machine, as far as can be determined: same host name and processor in the same
/// boot, or equal descriptions in different boots. Systems with different names in one boot are containers on one
/// machine, and count as different ones.
fn is_same_machine(one: Option<&Facts>, other: Option<&Facts>) -> bool {
    // A worker that is not available runs no workload.
    let (Some(one), Some(other)) = (one, other) else { return true };
    let identity = |facts: &Facts| (facts.boot_id.clone(), facts.hostname.clone(), facts.cpu_model.clone());
    identity(one) == identity(other) || format_machine(one) == format_machine(other)
}

fn format_machine(facts: &Facts) -> String {
    format!("{} with {} of {}", facts.hostname, pluralize(facts.cpus.len(), "CPU"), facts.cpu_model)
}

fn format_roles(roles: &[Roles]) -> String {
    if roles.is_empty() {
        return format!("`{}`", WorkerName::local());
    }
    let names = |all: &[WorkerName]| all.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let assignment = |Roles { worker, servers }: &Roles| match servers[..] {
        [] => format!("`{worker}`"),
        _ => format!("`{worker}` with servers on {}", names(servers)),
    };
    roles.iter().map(assignment).collect::<Vec<_>>().join(", ")
}

/// Returns a note for each machine that now runs another kernel than for earlier samples.
pub fn kernel_change_notes(earlier: &[Invocation], cells: &[ActiveCell], pool: &WorkerPool) -> Vec<String> {
    if cells.iter().all(|cell| cell.evaluated.is_empty()) {
        return Vec::new();
    }
    let note = |member: &PooledWorker| {
        let name = member.worker.name();
        let before = &earlier.iter().rev().find_map(|invocation| invocation.facts.get(name))?.kernel;
        let now = &member.facts.kernel;
        (before != now)
            .then(|| format!("`{name}` runs kernel {now}; earlier samples in this folder were taken with {before}"))
    };
    pool.workers.iter().filter_map(note).collect()
}

/// Returns a warning if cells keep the work that an earlier invocation calibrated for another minimum time than the
/// requested one.
pub fn work_change_warning(earlier: &[Invocation], cells: &[ActiveCell], sampling: &Sampling) -> Option<String> {
    // Tests that set their duration themselves have no minimum time.
    let calibrated = cells.iter().filter(|cell| cell.definition.min_time.is_some() && cell.is_calibrated());
    // Later attempts of a cell repeat the work of the first one.
    let invocations = calibrated.filter_map(|cell| {
        let first = cell.evaluated.iter().find(|evaluated| evaluated.attempt.is_finished())?;
        earlier.get(usize::try_from(first.attempt.invocation?).ok()?)
    });
    let min_time = |invocation: &Invocation| {
        let sampling: Sampling = serde_json::from_value(invocation.sampling.clone()).ok()?;
        Some(sampling.min_time)
    };
    let min_times: BTreeSet<Nanos> = invocations.filter_map(min_time).collect();
    let others: Vec<String> =
        min_times.iter().filter(|min_time| **min_time != sampling.min_time).map(Nanos::to_string).collect();
    (!others.is_empty()).then(|| {
        format!(
            "cells with samples keep their calibrated work (min-time {}); the new min-time {} is ignored for them",
            others.join(" and "),
            sampling.min_time
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topology_is_the_roles_without_the_names() {
        let roles = |names: &[&str]| {
            let mut names = names.iter().map(|name| WorkerName::new(*name).unwrap());
            Roles { worker: names.next().unwrap(), servers: names.collect() }
        };
        assert_eq!(topology(&[roles(&["a", "b"])]), topology(&[roles(&["c", "a"])]));
        assert_eq!(topology(&[roles(&["a", "b"]), roles(&["b", "a"])]), [[Some(0), Some(1)], [Some(1), Some(0)]]);
        assert_ne!(topology(&[roles(&["a", "b", "a", "b"])]), topology(&[roles(&["a", "a", "b", "a"])]));
    }

    #[test]
    fn systems_with_different_names_in_one_boot_are_different_machines() {
        let facts = |hostname: &str, boot_id: &str, cpu_model: &str| Facts {
            hostname: hostname.to_owned(),
            boot_id: boot_id.to_owned(),
            cpu_model: cpu_model.to_owned(),
            ..Facts::default()
        };
        let one = facts("a", "1", "x");
        for (other, expected) in [
            (facts("a", "1", "x"), true),
            (facts("b", "1", "x"), false),
            (facts("a", "2", "x"), true),
            (facts("a", "2", "y"), false),
        ] {
            assert_eq!(is_same_machine(Some(&one), Some(&other)), expected, "{other:?}");
        }
        assert!(is_same_machine(Some(&one), None), "an unavailable worker runs no workload");
    }
}
