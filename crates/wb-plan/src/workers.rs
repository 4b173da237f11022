//! The workers that a plan is made for.

use std::collections::BTreeMap;

use wb_model::{Facts, WorkerName};

/// The workers that a plan is made for, and groups of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Workers {
    /// In the order they were given, with their facts, or why there is no way to them; at least one.
    pub all: Vec<(WorkerName, Result<Facts, String>)>,
    /// By name.
    pub groups: BTreeMap<String, Vec<WorkerName>>,
}

impl Workers {
    /// This machine alone.
    pub fn local(facts: Facts) -> Self {
        Self { all: vec![(WorkerName::local(), Ok(facts))], groups: BTreeMap::new() }
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &WorkerName> {
        self.all.iter().map(|(name, _)| name)
    }

    /// The facts of a worker, or why there is no way to it; none where it is none of these.
    pub fn facts(&self, worker: &WorkerName) -> Option<Result<&Facts, &str>> {
        let found = self.all.iter().find(|(name, _)| name == worker);
        found.map(|(_, facts)| facts.as_ref().map_err(String::as_str))
    }

    /// The workers of this name: one, or a group.
    pub(crate) fn named(&self, name: &str) -> Option<Vec<WorkerName>> {
        let one = self.names().find(|worker| worker.as_str() == name).map(|worker| vec![worker.clone()]);
        one.or_else(|| self.groups.get(name).cloned())
    }
}
