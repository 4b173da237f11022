//! The parameters of redis, and quantities derived from them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Axis, Bytes, Facts};

use crate::count::AutoCount;

/// How a redis cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct RedisParams {
    /// Command to measure; before get and lpop the server is filled with the data that they read
    #[schemars(extend("x-axis" = true, "x-default" = "each of them"))]
    pub(super) command: Option<RedisCommand>,
    /// Requests per sample, rounded up to whole pipelines; auto: as many as fill its time
    pub(super) requests: AutoCount,
    /// Concurrent connections
    #[schemars(range(min = 1, max = 10_000))]
    pub(super) clients: u32,
    /// Requests that each connection sends before it waits for replies
    #[schemars(range(min = 1, max = 10_000))]
    pub(super) pipeline: u32,
    /// Size of a value
    pub(super) data_size: Bytes,
    /// Number of keys, or set elements, that requests choose from at random
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub(super) keyspace: u64,
    /// CPUs of the server and the benchmark: any, the same CPU, two CPUs of one NUMA node, or of two nodes; or all CPUs of
    /// a node for both, or of a node for each, as `numactl --cpunodebind` places them
    pub(super) placement: Axis<CpuPlacement>,
    /// TCP port on 127.0.0.1; 0: a private Unix socket
    pub(super) port: u16,
}

/// A measured command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RedisCommand {
    /// Store a value under a random key
    Set,
    /// Read the value of a random key
    Get,
    /// Push a value to the front of a list
    Lpush,
    /// Pop the first value of a list
    Lpop,
    /// Add a random element to a set
    Sadd,
}

impl RedisCommand {
    pub(super) const ALL: [Self; 5] = [Self::Set, Self::Get, Self::Lpush, Self::Lpop, Self::Sadd];

    /// Its name for redis-benchmark and in the server's statistics.
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

/// CPUs of the two processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CpuPlacement {
    /// Chosen by the kernel
    #[default]
    None,
    /// On one CPU
    SameCpu,
    /// On two CPUs of one node
    SameNode,
    /// On CPUs of two nodes
    CrossNode,
    /// Both on all CPUs of the first node
    OneNode,
    /// On all CPUs of two nodes
    TwoNodes,
}

impl Default for RedisParams {
    fn default() -> Self {
        Self {
            command: None,
            requests: AutoCount::Fixed(10_000_000),
            clients: 50,
            pipeline: 1,
            data_size: Bytes(3),
            keyspace: 100_000,
            placement: Axis(CpuPlacement::None),
            port: 0,
        }
    }
}

impl RedisParams {
    pub(super) fn redis_command(&self) -> RedisCommand {
        self.command.unwrap_or(RedisCommand::Set)
    }

    /// Rounds a number of requests up to whole pipelines, as redis-benchmark sends only those.
    pub(super) fn round_to_pipeline(&self, requests: u64) -> u64 {
        requests.div_ceil(u64::from(self.pipeline)).max(1).saturating_mul(u64::from(self.pipeline))
    }

    /// Requests per sample, if given.
    pub(super) fn requested(&self) -> Option<u64> {
        match self.requests {
            AutoCount::Auto => None,
            AutoCount::Fixed(requests) => Some(self.round_to_pipeline(requests)),
        }
    }

    /// Maximum memory of the server for a number of requests, in bytes, with keys, elements and allocator overhead.
    pub(super) fn memory_bytes(&self, requests: u64) -> u64 {
        const SERVER: u64 = 16 << 20;
        let (count, bytes_each) = match self.redis_command() {
            RedisCommand::Set => (self.keyspace.min(requests), self.data_size.0.saturating_add(150)),
            RedisCommand::Get => (self.keyspace, self.data_size.0.saturating_add(150)),
            RedisCommand::Lpush | RedisCommand::Lpop => (requests, self.data_size.0.saturating_add(16)),
            RedisCommand::Sadd => (self.keyspace.min(requests), 120),
        };
        count.saturating_mul(bytes_each).saturating_add(SERVER)
    }
}

const ONE_NODE: &str = "only one NUMA node of this worker has usable CPUs";
const NO_CPU: &str = "no usable CPU on this worker";

/// The CPUs of the server and of the benchmark.
pub(super) type SideCpus = (Vec<u32>, Vec<u32>);

/// Selects the CPUs of the server and of the benchmark; none if the kernel chooses them.
pub(super) fn select_cpus(placement: CpuPlacement, allowed: &[u32], facts: &Facts) -> Result<Option<SideCpus>, String> {
    let usable = || facts.cpus.iter().filter(|cpu| allowed.is_empty() || allowed.contains(&cpu.id));
    let pairs = || usable().flat_map(|a| usable().filter(move |b| b.id != a.id).map(move |b| (a, b)));
    let nodes: BTreeSet<u32> = usable().map(|cpu| cpu.node).collect();
    let on_node = |node: &u32| usable().filter(|cpu| cpu.node == *node).map(|cpu| cpu.id).collect::<Vec<_>>();
    let pair = match placement {
        CpuPlacement::None => return Ok(None),
        CpuPlacement::OneNode | CpuPlacement::TwoNodes => {
            let second = if placement == CpuPlacement::TwoNodes { 1 } else { 0 };
            let sides = nodes.first().zip(nodes.iter().nth(second));
            let reason = if nodes.is_empty() { NO_CPU } else { ONE_NODE };
            return sides.map(|(a, b)| Some((on_node(a), on_node(b)))).ok_or_else(|| reason.to_owned());
        }
        CpuPlacement::SameCpu => usable().next().map(|cpu| (cpu, cpu)),
        // Prefer two cores: threads of one core share more than a node.
        CpuPlacement::SameNode => {
            pairs().filter(|(a, b)| a.node == b.node).min_by_key(|(a, b)| (a.package, a.core) == (b.package, b.core))
        }
        CpuPlacement::CrossNode => pairs().find(|(a, b)| a.node != b.node),
    };
    let reason = match placement {
        CpuPlacement::SameNode => "no NUMA node of this worker has two usable CPUs",
        CpuPlacement::CrossNode => ONE_NODE,
        _ => NO_CPU,
    };
    pair.map(|(server, benchmark)| Some((vec![server.id], vec![benchmark.id]))).ok_or_else(|| reason.to_owned())
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
    fn cpus_follow_the_placement() {
        let two_nodes = facts(&[(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 0, 1)]);
        let cpus = |placement| select_cpus(placement, &[], &two_nodes).unwrap();
        assert_eq!(cpus(CpuPlacement::None), None);
        let pair = |server, benchmark| Some((vec![server], vec![benchmark]));
        assert_eq!(cpus(CpuPlacement::SameCpu), pair(0, 0));
        assert_eq!(cpus(CpuPlacement::SameNode), pair(0, 2));
        assert_eq!(cpus(CpuPlacement::CrossNode), pair(0, 3));
        assert_eq!(cpus(CpuPlacement::OneNode), Some((vec![0, 1, 2], vec![0, 1, 2])));
        assert_eq!(cpus(CpuPlacement::TwoNodes), Some((vec![0, 1, 2], vec![3])));
        assert_eq!(select_cpus(CpuPlacement::SameNode, &[0, 1], &two_nodes), Ok(pair(0, 1)));
        assert_eq!(select_cpus(CpuPlacement::OneNode, &[2, 3], &two_nodes), Ok(Some((vec![2], vec![2]))));
        assert!(select_cpus(CpuPlacement::TwoNodes, &[0, 1], &two_nodes).unwrap_err().contains("only one NUMA node"));
        assert!(select_cpus(CpuPlacement::OneNode, &[], &Facts::default()).unwrap_err().contains("no usable CPU"));
        assert!(
            select_cpus(CpuPlacement::CrossNode, &[0, 1, 2], &two_nodes).unwrap_err().contains("only one NUMA node")
        );
        assert!(select_cpus(CpuPlacement::SameNode, &[3], &two_nodes).unwrap_err().contains("two usable CPUs"));
        assert!(select_cpus(CpuPlacement::SameCpu, &[], &Facts::default()).is_err());
    }

    #[test]
    fn requests_are_rounded_to_whole_pipelines() {
        let params = RedisParams { pipeline: 16, requests: AutoCount::Fixed(100), ..RedisParams::default() };
        assert_eq!(params.requested(), Some(112));
        assert_eq!(RedisParams::default().requested(), Some(10_000_000));
        assert_eq!(params.round_to_pipeline(0), 16);
    }

    #[test]
    fn memory_depends_on_the_stored_data() {
        let bytes =
            |command| RedisParams { command: Some(command), ..RedisParams::default() }.memory_bytes(10_000_000) >> 20;
        assert_eq!(bytes(RedisCommand::Lpop), bytes(RedisCommand::Lpush));
        assert!((150..400).contains(&bytes(RedisCommand::Lpop)), "{}", bytes(RedisCommand::Lpop));
        assert!(bytes(RedisCommand::Set) < 64 && bytes(RedisCommand::Sadd) < 64);
    }
}
