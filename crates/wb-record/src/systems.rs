//! The systems of a run, from the facts and environments that it recorded.

use wb_model::{Facts, System, WorkerName};
use wb_sys::Environment;

use crate::{Entry, RunFolder, files};

/// The table of each machine that measured, in the order of entries and workers, each once. An environment that is
/// missing or cannot be read leaves what the facts say.
pub fn systems(run: &RunFolder, entries: &[Entry]) -> Vec<System> {
    let mut systems = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        for (worker, facts) in &entry.facts {
            let environment = environment(run, number, entry, worker, facts).unwrap_or_default();
            let system = wb_sys::system(facts, &environment);
            if !systems.contains(&system) {
                systems.push(system);
            }
        }
    }
    systems
}

/// What a worker was like before an entry: the first worker's file is without a name, which its boot tells apart.
fn environment(
    run: &RunFolder,
    number: usize,
    entry: &Entry,
    worker: &WorkerName,
    facts: &Facts,
) -> Option<Environment> {
    let read = |of: &str| {
        let path = run.environment(&format!("world-{number}-before{of}"));
        files::read_json::<Environment>(&path).ok().flatten()
    };
    let is_its_own = |environment: &Environment| {
        entry.facts.len() == 1 || environment.kernel.boot_id.as_deref() == Some(facts.boot_id.as_str())
    };
    read(&format!("@{worker}")).or_else(|| read("").filter(is_its_own))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn entry(facts: &[(&str, &str, &str)]) -> Entry {
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
        let path = run.environment(name);
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
}
