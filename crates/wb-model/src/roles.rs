//! Which workers measure a cell together, and what each of them does.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkerName;

/// How many sides a test has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// One: each worker measures by itself.
    Single,
    /// Two: a client and so many servers, which may be on the same worker.
    ClientServer {
        /// How many.
        servers: usize,
    },
}

/// A worker that measures, and those that serve it. A cell has one team, or several that measure at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Roles {
    /// Where it is measured; of two sides, the client's.
    pub worker: WorkerName,
    /// Where each of its servers runs; the worker itself among them where nothing else was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<WorkerName>,
}

impl Roles {
    /// A worker that does all of it.
    pub fn single(worker: WorkerName, sides: Topology) -> Self {
        let servers = match sides {
            Topology::Single => Vec::new(),
            Topology::ClientServer { servers } => vec![worker.clone(); servers],
        };
        Self { worker, servers }
    }

    /// The servers' workers that are not the one that measures, each once.
    pub fn remote_servers(&self) -> BTreeSet<&WorkerName> {
        self.servers.iter().filter(|server| **server != self.worker).collect()
    }

    /// Whether any of its servers is elsewhere.
    pub fn has_remote_server(&self) -> bool {
        self.servers.iter().any(|server| *server != self.worker)
    }
}

/// The workers of all teams, each once.
pub fn all_workers(teams: &[Roles]) -> BTreeSet<&WorkerName> {
    teams.iter().flat_map(|team| std::iter::once(&team.worker).chain(&team.servers)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_alone_serves_itself() {
        let name = |name: &str| WorkerName::new(name).unwrap();
        let alone = Roles::single(name("a"), Topology::ClientServer { servers: 2 });
        assert_eq!((alone.servers.len(), alone.has_remote_server(), alone.remote_servers().len()), (2, false, 0));
        let apart = Roles { worker: name("a"), servers: vec![name("b"), name("a"), name("b")] };
        assert!(apart.has_remote_server());
        assert_eq!(apart.remote_servers(), BTreeSet::from([&name("b")]));
        assert_eq!(all_workers(&[alone, apart]), BTreeSet::from([&name("a"), &name("b")]));
    }
}
