//! Going on in a folder that has been worked on: what is complete stays, what is defined otherwise is refused.

use std::collections::BTreeMap;
use std::path::Path;

use wb_model::param::differences;
use wb_model::{Facts, ProfileName, Roles, WorkerName, pluralize};
use wb_plan::{Plan, PlanWorkers, Sampling};
use wb_profile::AppliedProfile;
use wb_record::{History, RecordError, RunEntry, RunFolder, files};
use wb_study::StudiedAttempt;
use wb_tests::Registry;

use crate::RunError;
use crate::active_cell::{ActiveCell, NextStep};
use crate::worker_pool::{PooledWorker, WorkerPool};

/// Refuses a plan with a cell that the folder has under another key.
pub fn check_keys(plan: &Plan, run: &RunFolder, history: &History) -> Result<(), RunError> {
    for cell in &plan.cells {
        let Some(key) = &cell.key else {
            let open = cell.unresolved.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(RunError::Open { cell: Box::new(cell.id.clone()), open });
        };
        if let Some(before) = history.other_key(&cell.id, key) {
            let definitions = run.definitions(&cell.id)?;
            let old = definitions.of(&cell.id);
            let mut differences = old.map(|old| differences(&old.params, &cell.params)).unwrap_or_default();
            if let Some(old) = old.filter(|old| old.version != cell.version) {
                differences.push(format!("measurement version {} there, {} now", old.version, cell.version));
            }
            return Err(RunError::Redefined { cell: Box::new(cell.id.clone()), before: before.clone(), differences });
        }
    }
    Ok(())
}

/// Has workers to which there is no way be what they were when they were measured last in a profile, as a folder has it: a
/// host is its guests where it had some.
///
/// # Errors
/// When the folder cannot be read.
pub fn restore_facts(folder: &Path, profile: &ProfileName, workers: &mut PlanWorkers) -> Result<(), RecordError> {
    let absent: Vec<WorkerName> =
        workers.workers.iter().filter(|(_, facts)| facts.is_err()).map(|(name, _)| name.clone()).collect();
    if absent.is_empty() || !folder.join("run.json").is_file() {
        return Ok(());
    }
    let run = RunFolder::open(folder)?;
    let entries = run.run_file()?.entries;
    let measured = |entry: &RunEntry| entry.cells.iter().any(|cell| cell.profile == *profile);
    for name in absent {
        for (number, entry) in entries.iter().enumerate().rev().filter(|(_, entry)| measured(entry)) {
            if let Some(facts) = entry.facts.get(&name) {
                workers.recorded.insert(name, facts.clone());
                break;
            }
            let guests = guests_of(&run, number, entry, &name)?;
            if !guests.is_empty() {
                workers.replace_unreachable(&name, guests);
                break;
            }
        }
    }
    Ok(())
}

/// The guests that measured in the place of a host in an entry, and what they were.
fn guests_of(
    run: &RunFolder,
    number: usize,
    entry: &RunEntry,
    host: &WorkerName,
) -> Result<BTreeMap<WorkerName, Facts>, RecordError> {
    let standings: Option<Vec<AppliedProfile>> = files::read_json(&run.environment_path(&format!("profile-{number}")))?;
    let guests = standings.into_iter().flatten().filter(|it| it.host == *host).flat_map(|it| it.guests);
    Ok(guests.filter_map(|guest| Some((guest.name.clone(), entry.facts.get(&guest.name)?.clone()))).collect())
}

/// Whether every cell of a plan is complete in a folder, by what is recorded there alone. One that could not be measured
/// is not.
pub fn is_complete(folder: &Path, plan: &Plan, registry: &Registry) -> Result<bool, RunError> {
    let run = RunFolder::open(folder)?;
    let history = History::of(&run, &run.journal_lines()?);
    for cell in &plan.cells {
        let Some(test) = registry.test(cell.id.test.as_str()) else { return Ok(false) };
        let definitions = run.definitions(&cell.id)?;
        let defined = definitions.of(&cell.id).filter(|known| Some(&known.key) == cell.key.as_ref());
        let Some(definition) = defined.cloned() else { return Ok(false) };
        let attempts = history.attempts(&cell.id).iter().cloned();
        let studied = attempts.map(|attempt| StudiedAttempt::of(test.as_ref(), &cell.params, attempt)).collect();
        let open = |open| RunError::Open { cell: Box::new(cell.id.clone()), open };
        let measuring = ActiveCell::new(cell.clone(), definition, test.clone(), studied).map_err(open)?;
        if matches!(measuring.next(&plan.sampling), NextStep::Attempt(..)) {
            return Ok(false);
        }
    }
    Ok(!plan.cells.is_empty())
}

/// Refuses a cell that has samples of other machines, or of another division of labour among them: they would be no series.
/// What the workers are called does not matter.
pub fn check_machines(
    cell: &ActiveCell,
    run: &RunFolder,
    earlier: &[RunEntry],
    crew: &WorkerPool,
) -> Result<(), RunError> {
    let id = &cell.cell.id;
    let definitions = run.definitions(id)?;
    let Some(before) = definitions.of(id).filter(|_| !cell.studied.is_empty()) else { return Ok(()) };
    let (before, now) = (&before.teams, &cell.definition.teams);
    let shape = |teams: &[Roles]| teams.iter().map(|team| team.servers.len()).collect::<Vec<_>>();
    let is_divided_so = before.is_empty() || now.is_empty() || shape(before) == shape(now);
    let here = crew.workers.iter().map(|member| (member.worker.name().clone(), Facts::clone(&member.facts))).collect();
    // Of the last time that all of them were there.
    let had_all = |entry: &&RunEntry| {
        entry.cells.contains(id) && machine_facts(before, &entry.facts).iter().all(|it| it.1.is_some())
    };
    let Some(entry) = earlier.iter().rev().find(had_all) else { return Ok(()) };
    let [were, are] = [machine_facts(before, &entry.facts), machine_facts(now, &here)];
    let other = were.iter().zip(&are).find(|((_, one), (_, other))| !is_same_machine(*one, *other));
    match other {
        None if is_divided_so && were.len() == are.len() => Ok(()),
        Some(((was, Some(before)), (worker, Some(now)))) if was == worker => Err(RunError::OtherMachine {
            cell: Box::new(id.clone()),
            worker: (*worker).clone(),
            before: format_machine(before),
            now: format_machine(now),
        }),
        _ => {
            let [before, now] = [before, now].map(|teams| format_roles(teams));
            Err(RunError::OtherWorkers { cell: Box::new(id.clone()), before, now })
        }
    }
}

/// The workers of teams, each once, and what they are where that is known.
fn machine_facts<'a>(
    teams: &'a [Roles],
    facts: &'a BTreeMap<WorkerName, Facts>,
) -> Vec<(WorkerName, Option<&'a Facts>)> {
    let mut names: Vec<WorkerName> = Vec::new();
    for name in teams.iter().flat_map(|team| [&team.worker].into_iter().chain(&team.servers)) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    if names.is_empty() {
        names.push(WorkerName::local());
    }
    names.into_iter().map(|name| (name.clone(), facts.get(&name))).collect()
}

/// Whether two are the same machine, as far as can be told: with the same name and processor in the same boot, or alike in
/// another. Systems of several names in one boot are containers of one machine.
fn is_same_machine(one: Option<&Facts>, other: Option<&Facts>) -> bool {
    // One that is not there measures nothing.
    let (Some(one), Some(other)) = (one, other) else { return true };
    let name = |facts: &Facts| (facts.boot_id.clone(), facts.hostname.clone(), facts.cpu_model.clone());
    name(one) == name(other) || format_machine(one) == format_machine(other)
}

fn format_machine(facts: &Facts) -> String {
    format!("{} with {} of {}", facts.hostname, pluralize(facts.cpus.len(), "CPU"), facts.cpu_model)
}

/// Who is in the teams of a cell.
fn format_roles(teams: &[Roles]) -> String {
    if teams.is_empty() {
        return format!("`{}`", WorkerName::local());
    }
    let names = |all: &[WorkerName]| all.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let team = |Roles { worker, servers }: &Roles| match servers[..] {
        [] => format!("`{worker}`"),
        _ => format!("`{worker}` with its servers on {}", names(servers)),
    };
    teams.iter().map(team).collect::<Vec<_>>().join(", ")
}

/// The machines whose kernel is another than the one that earlier samples were taken with, a sentence each.
pub fn kernel_change_notes(earlier: &[RunEntry], cells: &[ActiveCell], crew: &WorkerPool) -> Vec<String> {
    if cells.iter().all(|cell| cell.studied.is_empty()) {
        return Vec::new();
    }
    let other = |member: &PooledWorker| {
        let name = member.worker.name();
        let before = &earlier.iter().rev().find_map(|entry| entry.facts.get(name))?.kernel;
        let now = &member.facts.kernel;
        (before != now).then(|| format!("`{name}` runs kernel {now}; earlier samples in this folder are of {before}"))
    };
    crew.workers.iter().filter_map(other).collect()
}

/// Samples of a cell do the same work for good, whatever time they are asked to take later: says so where it matters.
pub fn work_change_note(earlier: &[RunEntry], cells: &[ActiveCell], sampling: &Sampling) -> Option<String> {
    let before: Sampling = serde_json::from_value(earlier.last()?.sampling.clone()).ok()?;
    let calibrated = cells.iter().any(ActiveCell::is_calibrated);
    (calibrated && before.min_time != sampling.min_time).then(|| {
        format!(
            "cells that have samples keep to the work that took {}, not to the {} asked for now: samples of one cell \
             do the same",
            before.min_time, sampling.min_time
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_of_several_names_in_one_boot_are_several_machines() {
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
        assert!(is_same_machine(Some(&one), None), "one that is away measures nothing");
    }
}
