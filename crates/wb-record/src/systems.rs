//! The systems of a run, from the facts and environments that it recorded.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{Facts, System, WorkerName};
use wb_sys::Environment;

use crate::{RunEntry, RunFolder, files};

/// The table of each machine that measured, in the order of entries and workers, each once. An environment that is
/// missing or cannot be read leaves what the facts say. Where several workers have one host name, it has their names too.
pub fn systems(run: &RunFolder, entries: &[RunEntry]) -> Vec<System> {
    let mut systems: Vec<(BTreeSet<&WorkerName>, System)> = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        for (worker, facts) in &entry.facts {
            let environment = environment(run, number, entry, worker, facts).unwrap_or_default();
            let system = wb_sys::system(facts, &environment);
            match systems.iter_mut().find(|(_, other)| *other == system) {
                Some((workers, _)) => drop(workers.insert(worker)),
                None => systems.push((BTreeSet::from([worker]), system)),
            }
        }
    }
    let mut workers_of: BTreeMap<String, BTreeSet<&WorkerName>> = BTreeMap::new();
    for (workers, system) in &systems {
        workers_of.entry(system.host.clone()).or_default().extend(workers);
    }
    let named = |(workers, system): (BTreeSet<&WorkerName>, System)| match workers_of[&system.host].len() {
        1 => system,
        _ => System { host: host_title(&workers, &system.host), ..system },
    };
    systems.into_iter().map(named).collect()
}

/// A host's name behind those of its workers, where they are others: `a, b (lab2)`.
pub fn host_title(workers: &BTreeSet<&WorkerName>, host: &str) -> String {
    let is_other = |name: &&str| *name != host && *name != WorkerName::local().as_str();
    let others: Vec<&str> = workers.iter().map(|worker| worker.as_str()).filter(is_other).collect();
    match others.is_empty() {
        true => host.to_owned(),
        false => format!("{} ({host})", others.join(", ")),
    }
}

/// What a worker was like before an entry: the first worker's file is without a name, which its boot tells apart.
fn environment(
    run: &RunFolder,
    number: usize,
    entry: &RunEntry,
    worker: &WorkerName,
    facts: &Facts,
) -> Option<Environment> {
    let read = |of: &str| {
        let path = run.environment_path(&format!("world-{number}-before{of}"));
        files::read_json::<Environment>(&path).ok().flatten()
    };
    let is_its_own = |environment: &Environment| {
        entry.facts.len() == 1 || environment.kernel.boot_id.as_deref() == Some(facts.boot_id.as_str())
    };
    read(&format!("@{worker}")).or_else(|| read("").filter(is_its_own))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(facts: &[(&str, &str, &str)]) -> RunEntry {
        let of = |(name, host, boot): &(&str, &str, &str)| {
            let facts = Facts { hostname: (*host).to_owned(), boot_id: (*boot).to_owned(), ..Facts::default() };
            (WorkerName::new(*name).unwrap(), facts)
        };
        let facts: BTreeMap<WorkerName, Facts> = facts.iter().map(of).collect();
        serde_json::from_value(json!({
            "started": "", "version": "", "program_sha256": "", "command": [], "plan": "", "plan_text": null,
            "sampling": {}, "seed": 0, "cells": [], "facts": facts, "metadata": {}
        }))
        .unwrap()
    }

    fn write(run: &RunFolder, name: &str, boot: &str, distribution: &str) {
        let world = json!({ "kernel": { "boot-id": boot, "distribution": distribution } });
        let path = run.environment_path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, world.to_string()).unwrap();
    }

    fn distributions(systems: &[System]) -> Vec<(&str, Option<&str>)> {
        systems.iter().map(|system| (system.host.as_str(), system.get("distribution"))).collect()
    }

    #[test]
    fn each_machine_has_its_own_environment_and_is_listed_once() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(folder.path()).unwrap();
        write(&run, "world-0-before", "b", "Made Linux 2");
        write(&run, "world-0-before@one", "a", "Made Linux 1");
        let both = entry(&[("one", "anvil", "a"), ("two", "sledge", "b"), ("zero", "lost", "c")]);
        let expected = [("anvil", Some("Made Linux 1")), ("sledge", Some("Made Linux 2")), ("lost", None)];
        assert_eq!(distributions(&systems(&run, std::slice::from_ref(&both))), expected);
        write(&run, "world-1-before", "b2", "Made Linux 2");
        let again = systems(&run, &[both, entry(&[("two", "sledge", "rebooted")])]);
        assert_eq!(distributions(&again), expected);
    }

    #[test]
    fn machines_of_one_host_name_have_the_names_of_their_workers() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(folder.path()).unwrap();
        write(&run, "world-0-before", "one-kernel", "Made Linux 12");
        write(&run, "world-0-before@b", "one-kernel", "Made Linux 13");
        write(&run, "world-0-before@c", "one-kernel", "Made Linux 13");
        let all = entry(&[("a", "same", "one-kernel"), ("b", "same", "one-kernel"), ("c", "same", "one-kernel")]);
        let expected = [("a (same)", Some("Made Linux 12")), ("b, c (same)", Some("Made Linux 13"))];
        assert_eq!(distributions(&systems(&run, &[all])), expected);
    }
}
