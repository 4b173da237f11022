//! The workers of a plan.

use std::collections::BTreeMap;

use wb_model::{Facts, WorkerName};

/// The workers of a plan with their facts, and groups of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanWorkers {
    /// At least one, in the order given, with its facts or the reason why it is unreachable.
    pub workers: Vec<(WorkerName, Result<Facts, String>)>,
    pub groups: BTreeMap<String, Vec<WorkerName>>,
    /// The last recorded facts of unreachable workers, from which machine-dependent values are resolved.
    pub recorded: BTreeMap<WorkerName, Facts>,
}

impl PlanWorkers {
    pub fn local(facts: Facts) -> Self {
        Self { workers: vec![(WorkerName::local(), Ok(facts))], ..Self::default() }
    }

    pub fn names(&self) -> impl Iterator<Item = &WorkerName> {
        self.workers.iter().map(|(name, _)| name)
    }

    /// The facts of a worker, or why it is unreachable; `None` if it is not a worker of this plan.
    pub fn facts(&self, worker: &WorkerName) -> Option<Result<&Facts, &str>> {
        let found = self.workers.iter().find(|(name, _)| name == worker);
        found.map(|(_, facts)| facts.as_ref().map_err(String::as_str))
    }

    /// The facts from which machine-dependent values are resolved: the current ones, or else the recorded ones.
    pub(crate) fn latest_facts(&self, worker: &WorkerName) -> Option<&Facts> {
        self.facts(worker)?.ok().or_else(|| self.recorded.get(worker))
    }

    /// Replaces an unreachable worker, such as a host, by others with their recorded facts, such as its guests.
    pub fn replace_unreachable(&mut self, worker: &WorkerName, by: BTreeMap<WorkerName, Facts>) {
        let Some(position) = self.workers.iter().position(|(name, facts)| name == worker && facts.is_err()) else {
            return;
        };
        let names: Vec<WorkerName> = by.keys().cloned().collect();
        let (_, reason) = self.workers.remove(position);
        self.workers.splice(position..position, names.iter().map(|name| (name.clone(), reason.clone())));
        for members in self.groups.values_mut() {
            if let Some(position) = members.iter().position(|name| name == worker) {
                members.splice(position..=position, names.iter().cloned());
            }
        }
        self.groups.insert(worker.to_string(), names);
        self.recorded.extend(by);
    }

    /// The workers that a name refers to: one worker, or the members of a group.
    pub(crate) fn resolve(&self, name: &str) -> Option<Vec<WorkerName>> {
        let single = self.names().find(|worker| worker.as_str() == name).map(|worker| vec![worker.clone()]);
        single.or_else(|| self.groups.get(name).cloned())
    }
}
