//! The workers that a plan is made for.

use std::collections::BTreeMap;

use wb_model::{Facts, WorkerName};

/// The workers that a plan is made for, and groups of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanWorkers {
    /// In the order they were given, with their facts, or why there is no way to them; at least one.
    pub workers: Vec<(WorkerName, Result<Facts, String>)>,
    /// By name.
    pub groups: BTreeMap<String, Vec<WorkerName>>,
    /// What those to which there is no way were when they were measured last: what the machine decides follows from that.
    pub recorded: BTreeMap<WorkerName, Facts>,
}

impl PlanWorkers {
    /// This machine alone.
    pub fn local(facts: Facts) -> Self {
        Self { workers: vec![(WorkerName::local(), Ok(facts))], ..Self::default() }
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &WorkerName> {
        self.workers.iter().map(|(name, _)| name)
    }

    /// The facts of a worker, or why there is no way to it; none where it is none of these.
    pub fn facts(&self, worker: &WorkerName) -> Option<Result<&Facts, &str>> {
        let found = self.workers.iter().find(|(name, _)| name == worker);
        found.map(|(_, facts)| facts.as_ref().map_err(String::as_str))
    }

    /// The facts by which what the machine decides is resolved for a worker: those of now, or else those recorded.
    pub(crate) fn latest_facts(&self, worker: &WorkerName) -> Option<&Facts> {
        self.facts(worker)?.ok().or_else(|| self.recorded.get(worker))
    }

    /// Puts others in the place of one to which there is no way, with the facts that are recorded of them: the guests of a
    /// host.
    pub fn replace_unreachable(&mut self, worker: &WorkerName, by: BTreeMap<WorkerName, Facts>) {
        let Some(at) = self.workers.iter().position(|(name, facts)| name == worker && facts.is_err()) else { return };
        let names: Vec<WorkerName> = by.keys().cloned().collect();
        let (_, why) = self.workers.remove(at);
        self.workers.splice(at..at, names.iter().map(|name| (name.clone(), why.clone())));
        for members in self.groups.values_mut() {
            if let Some(at) = members.iter().position(|name| name == worker) {
                members.splice(at..=at, names.iter().cloned());
            }
        }
        self.groups.insert(worker.to_string(), names);
        self.recorded.extend(by);
    }

    /// The workers of this name: one, or a group.
    pub(crate) fn resolve(&self, name: &str) -> Option<Vec<WorkerName>> {
        let one = self.names().find(|worker| worker.as_str() == name).map(|worker| vec![worker.clone()]);
        one.or_else(|| self.groups.get(name).cloned())
    }
}
