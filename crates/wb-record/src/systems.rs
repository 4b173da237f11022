//! The systems of a run, from its recorded facts and environments.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{Facts, System, WorkerName};
use wb_sys::Environment;

use crate::{Invocation, RunFolder};

/// The system of each machine that measured, in the order of invocations and workers, each once. If its environment is
/// missing or cannot be read, only the facts are used. If several systems have the same host name, the names of their
/// workers are added.
pub fn systems(run: &RunFolder, invocations: &[Invocation]) -> Vec<System> {
    let mut systems: Vec<(BTreeSet<&WorkerName>, System)> = Vec::new();
    for (number, invocation) in invocations.iter().enumerate() {
        for (worker, facts) in &invocation.facts {
            let environment = environment(run, number, invocation, worker, facts).unwrap_or_default();
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

/// The title of a host: the names of its workers, if they differ from the host name, and the host name, if it is known:
/// `a, b (lab2)`.
pub fn host_title(workers: &BTreeSet<&WorkerName>, host: &str) -> String {
    let is_other = |name: &&str| *name != host && *name != WorkerName::local().as_str();
    let others: Vec<&str> = workers.iter().map(|worker| worker.as_str()).filter(is_other).collect();
    if others.is_empty() {
        host.to_owned()
    } else if host.is_empty() {
        others.join(", ")
    } else {
        format!("{} ({host})", others.join(", "))
    }
}

/// The environment of a worker before an invocation. The first worker's file has no worker name; the boot ID identifies
/// the worker.
fn environment(
    run: &RunFolder,
    number: usize,
    invocation: &Invocation,
    worker: &WorkerName,
    facts: &Facts,
) -> Option<Environment> {
    let read = |suffix: &str| {
        let path = run.environment_path(&format!("world-{number}-before{suffix}"));
        run.read_json::<Environment>(&path).ok().flatten()
    };
    let is_of_worker = |environment: &Environment| {
        invocation.facts.len() == 1 || environment.kernel.boot_id.as_deref() == Some(facts.boot_id.as_str())
    };
    read(&format!("@{worker}")).or_else(|| read("").filter(is_of_worker))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn invocation(facts: &[(&str, &str, &str)]) -> Invocation {
        let named_facts = |(name, host, boot): &(&str, &str, &str)| {
            let facts = Facts { hostname: (*host).to_owned(), boot_id: (*boot).to_owned(), ..Facts::default() };
            (WorkerName::new(*name).unwrap(), facts)
        };
        let facts: BTreeMap<WorkerName, Facts> = facts.iter().map(named_facts).collect();
        serde_json::from_value(json!({
            "started": "", "version": "", "program_sha256": "", "command": [], "plan": "", "plan_text": null,
            "sampling": {}, "seed": 0, "cells": [], "facts": facts, "metadata": {}
        }))
        .unwrap()
    }

    fn write(run: &RunFolder, name: &str, boot: &str, distribution: &str) {
        let environment = json!({ "kernel": { "boot-id": boot, "distribution": distribution } });
        let path = run.environment_path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, environment.to_string()).unwrap();
    }

    fn distributions(systems: &[System]) -> Vec<(&str, Option<&str>)> {
        systems.iter().map(|system| (system.host.as_str(), system.get("distribution"))).collect()
    }

    #[test]
    fn each_machine_has_its_own_environment_and_is_listed_once() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(folder.path()).unwrap();
        write(&run, "world-0-before", "b", "Fake Linux 2");
        write(&run, "world-0-before@one", "a", "Fake Linux 1");
        let both = invocation(&[("one", "anvil", "a"), ("two", "sledge", "b"), ("zero", "lost", "c")]);
        let expected = [("anvil", Some("Fake Linux 1")), ("sledge", Some("Fake Linux 2")), ("lost", None)];
        assert_eq!(distributions(&systems(&run, std::slice::from_ref(&both))), expected);
        write(&run, "world-1-before", "b2", "Fake Linux 2");
        let again = systems(&run, &[both, invocation(&[("two", "sledge", "rebooted")])]);
        assert_eq!(distributions(&again), expected);
    }

    #[test]
    fn machines_with_the_same_host_name_have_the_names_of_their_workers() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(folder.path()).unwrap();
        write(&run, "world-0-before", "one-kernel", "Fake Linux 12");
        write(&run, "world-0-before@b", "one-kernel", "Fake Linux 13");
        write(&run, "world-0-before@c", "one-kernel", "Fake Linux 13");
        let all = invocation(&[("a", "same", "one-kernel"), ("b", "same", "one-kernel"), ("c", "same", "one-kernel")]);
        let expected = [("a (same)", Some("Fake Linux 12")), ("b, c (same)", Some("Fake Linux 13"))];
        assert_eq!(distributions(&systems(&run, &[all])), expected);
    }
}
