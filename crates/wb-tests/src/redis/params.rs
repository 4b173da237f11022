//! The parameters of redis, and what follows from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Axis, Bytes, Facts};

use crate::count::Count;

/// How a redis cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Params {
    /// What is asked of the server; before get and lpop it is filled with what they ask for
    #[schemars(extend("x-axis" = true, "x-resolved" = "each of them"))]
    pub(super) command: Option<Verb>,
    /// Requests in one sample, rounded up to whole pipelines; auto: as many as fill its time
    pub(super) requests: Count,
    /// Connections at once
    #[schemars(range(min = 1, max = 10_000))]
    pub(super) clients: u32,
    /// Requests that a connection sends before it waits for replies
    #[schemars(range(min = 1, max = 10_000))]
    pub(super) pipeline: u32,
    /// Size of a value
    pub(super) data_size: Bytes,
    /// Keys, or set elements, that requests choose from at random
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub(super) keyspace: u64,
    /// Where the server and the benchmark run: anywhere, on one CPU, on two of one node, on two nodes
    pub(super) placement: Axis<Place>,
    /// TCP port on 127.0.0.1; 0: a private Unix socket
    pub(super) port: u16,
}

/// A command that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verb {
    /// A value is stored under a random key
    Set,
    /// The value of a random key is read
    Get,
    /// A value is put in front of one list
    Lpush,
    /// The first value of one list is taken
    Lpop,
    /// A random element is put into one set
    Sadd,
}

impl Verb {
    pub(super) const ALL: [Self; 5] = [Self::Set, Self::Get, Self::Lpush, Self::Lpop, Self::Sadd];

    /// Its name, as redis-benchmark takes it and the server's statistics call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Get => "get",
            Self::Lpush => "lpush",
            Self::Lpop => "lpop",
            Self::Sadd => "sadd",
        }
    }
}

/// Where the two processes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    /// Wherever the system puts them
    #[default]
    None,
    /// On one CPU
    SameCpu,
    /// On two CPUs of one node
    SameNode,
    /// On CPUs of two nodes
    CrossNode,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            command: None,
            requests: Count::Exactly(10_000_000),
            clients: 50,
            pipeline: 1,
            data_size: Bytes(3),
            keyspace: 100_000,
            placement: Axis(Place::None),
            port: 0,
        }
    }
}

impl Params {
    /// The command.
    pub(super) fn verb(&self) -> Verb {
        self.command.unwrap_or(Verb::Set)
    }

    /// So many requests, in whole pipelines: redis-benchmark sends no others.
    pub(super) fn whole(&self, requests: u64) -> u64 {
        requests.div_ceil(u64::from(self.pipeline)).max(1).saturating_mul(u64::from(self.pipeline))
    }

    /// Requests in one sample, where they were given.
    pub(super) fn given(&self) -> Option<u64> {
        match self.requests {
            Count::Auto => None,
            Count::Exactly(requests) => Some(self.whole(requests)),
        }
    }

    /// Memory that the server needs for so many requests at most, in bytes; keys, elements and allocation included.
    pub(super) fn bytes(&self, requests: u64) -> u64 {
        const SERVER: u64 = 16 << 20;
        let (many, each) = match self.verb() {
            Verb::Set => (self.keyspace.min(requests), self.data_size.0 + 150),
            Verb::Get => (self.keyspace, self.data_size.0 + 150),
            Verb::Lpush | Verb::Lpop => (requests, self.data_size.0 + 16),
            Verb::Sadd => (self.keyspace.min(requests), 120),
        };
        many.saturating_mul(each).saturating_add(SERVER)
    }
}

/// The CPUs of the server and of the benchmark; none where the placement leaves the choice.
pub(super) fn cpus(place: Place, allowed: &[u32], facts: &Facts) -> Result<Option<(u32, u32)>, String> {
    let usable = || facts.cpus.iter().filter(|cpu| allowed.is_empty() || allowed.contains(&cpu.id));
    let pairs = || usable().flat_map(|a| usable().filter(move |b| b.id != a.id).map(move |b| (a, b)));
    let found = match place {
        Place::None => return Ok(None),
        Place::SameCpu => usable().next().map(|cpu| (cpu, cpu)),
        // Two cores where there are two: their threads share more than a node.
        Place::SameNode => {
            pairs().filter(|(a, b)| a.node == b.node).min_by_key(|(a, b)| (a.package, a.core) == (b.package, b.core))
        }
        Place::CrossNode => pairs().find(|(a, b)| a.node != b.node),
    };
    let lacking = match place {
        Place::SameNode => "no node here has two usable CPUs",
        Place::CrossNode => "there is only one node with usable CPUs here",
        Place::None | Place::SameCpu => "there is no usable CPU here",
    };
    found.map(|(server, benchmark)| Some((server.id, benchmark.id))).ok_or_else(|| lacking.to_owned())
}

#[cfg(test)]
mod tests {
    use wb_model::facts::Cpu;

    use super::*;

    fn facts(cpus: &[(u32, u32, u32)]) -> Facts {
        let cpu = |&(id, core, node)| Cpu { id, core, package: node, node };
        Facts { cpus: cpus.iter().map(cpu).collect(), ..Facts::default() }
    }

    #[test]
    fn server_and_benchmark_go_where_the_placement_says() {
        let two_nodes = facts(&[(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 0, 1)]);
        let on = |place| cpus(place, &[], &two_nodes).unwrap();
        assert_eq!(on(Place::None), None);
        assert_eq!(on(Place::SameCpu), Some((0, 0)));
        assert_eq!(on(Place::SameNode), Some((0, 2)));
        assert_eq!(on(Place::CrossNode), Some((0, 3)));
        assert_eq!(cpus(Place::SameNode, &[0, 1], &two_nodes), Ok(Some((0, 1))));
        assert!(cpus(Place::CrossNode, &[0, 1, 2], &two_nodes).unwrap_err().contains("one node"));
        assert!(cpus(Place::SameNode, &[3], &two_nodes).unwrap_err().contains("two usable CPUs"));
        assert!(cpus(Place::SameCpu, &[], &Facts::default()).is_err());
    }

    #[test]
    fn requests_come_in_whole_pipelines() {
        let params = Params { pipeline: 16, requests: Count::Exactly(100), ..Params::default() };
        assert_eq!(params.given(), Some(112));
        assert_eq!(Params::default().given(), Some(10_000_000));
        assert_eq!(params.whole(0), 16);
    }

    #[test]
    fn memory_follows_what_the_server_keeps() {
        let bytes = |verb| Params { command: Some(verb), ..Params::default() }.bytes(10_000_000) >> 20;
        assert_eq!(bytes(Verb::Lpop), bytes(Verb::Lpush));
        assert!((150..400).contains(&bytes(Verb::Lpop)), "{}", bytes(Verb::Lpop));
        assert!(bytes(Verb::Set) < 64 && bytes(Verb::Sadd) < 64);
    }
}
