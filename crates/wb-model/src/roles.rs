//! Assignment of workers to the roles of a test.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkerName;

/// Topology of a test: a single worker, or a client and a number of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// A single worker measures by itself.
    Single,
    /// A client and servers, which may be on the same worker.
    ClientServer { servers: usize },
}

/// A measuring worker and the workers of its servers. A cell has one or more such assignments, which measure
/// concurrently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Roles {
    /// The measuring worker; with servers, the client.
    pub worker: WorkerName,
    /// Worker of each server; the measuring worker itself by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<WorkerName>,
}

impl Roles {
    pub fn single(worker: WorkerName, sides: Topology) -> Self {
        let servers = match sides {
            Topology::Single => Vec::new(),
            Topology::ClientServer { servers } => vec![worker.clone(); servers],
        };
        Self { worker, servers }
    }

    /// Returns the workers of servers other than the measuring one, without duplicates.
    pub fn remote_servers(&self) -> BTreeSet<&WorkerName> {
        self.servers.iter().filter(|server| **server != self.worker).collect()
    }

    /// The measuring one first.
    pub fn workers(&self) -> impl Iterator<Item = &WorkerName> {
        std::iter::once(&self.worker).chain(&self.servers)
    }

    pub fn has_remote_server(&self) -> bool {
        self.servers.iter().any(|server| *server != self.worker)
    }
}

pub fn all_workers(roles: &[Roles]) -> BTreeSet<&WorkerName> {
    roles.iter().flat_map(Roles::workers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_worker_serves_itself() {
        let name = |name: &str| WorkerName::new(name).unwrap();
        let single = Roles::single(name("a"), Topology::ClientServer { servers: 2 });
        assert_eq!((single.servers.len(), single.has_remote_server(), single.remote_servers().len()), (2, false, 0));
        let remote = Roles { worker: name("a"), servers: vec![name("b"), name("a"), name("b")] };
        assert!(remote.has_remote_server());
        assert_eq!(remote.remote_servers(), BTreeSet::from([&name("b")]));
        assert_eq!(all_workers(&[single, remote]), BTreeSet::from([&name("a"), &name("b")]));
    }
}
