//! What a worker is: the facts that plans resolve against and results are read with.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, pluralize};

/// A worker's hardware and kernel, as far as a plan depends on them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Its host name.
    pub hostname: String,
    /// Kernel release, as `uname -r` says.
    pub kernel: String,
    /// Machine architecture, as `uname -m` says.
    pub arch: String,
    /// The processor's model name.
    pub cpu_model: String,
    /// What the processor can do, in the kernel's words: `avx2`, `avx512f`.
    pub cpu_flags: BTreeSet<String>,
    /// The online CPUs this program may use.
    pub cpus: Vec<Cpu>,
    /// The NUMA nodes that have memory or CPUs.
    pub nodes: Vec<Node>,
    /// The caches, each once.
    pub caches: Vec<Cache>,
    /// Memory in all.
    pub memory: Bytes,
    /// Memory that can be had without swapping.
    pub memory_available: Bytes,
    /// The hypervisor that it runs under, where one shows itself.
    pub hypervisor: Option<String>,
    /// Whether its instructions are emulated by software.
    pub emulated: bool,
    /// The kernel's id of this boot.
    pub boot_id: String,
}

/// One CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The kernel's number of it.
    pub id: u32,
    /// The core it is a thread of, within its package.
    pub core: u32,
    /// The package (socket) it is on.
    pub package: u32,
    /// The NUMA node it is on.
    pub node: u32,
}

/// One NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// The kernel's number of it.
    pub id: u32,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// Its memory.
    pub memory: Bytes,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cache {
    /// Its level, from 1.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Its size.
    pub size: Bytes,
    /// The CPUs that share it.
    pub cpus: Vec<u32>,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data.
    Data,
    /// Instructions.
    Instruction,
    /// Both.
    Unified,
}

impl Facts {
    /// The size of the largest cache of the last level; zero where none is known.
    pub fn last_level_cache(&self) -> Bytes {
        self.caches.iter().max_by_key(|cache| (cache.level, cache.size)).map(|cache| cache.size).unwrap_or_default()
    }

    /// One CPU of each core, in order: where threads go that shall not share a core.
    pub fn one_cpu_per_core(&self) -> Vec<u32> {
        let mut seen = BTreeSet::new();
        self.cpus.iter().filter(|cpu| seen.insert((cpu.package, cpu.core))).map(|cpu| cpu.id).collect()
    }

    /// How many CPUs there are, and on what: `16 on 8 cores, 1 package, 1 NUMA node`; none where no CPU is known.
    pub fn topology(&self) -> Option<String> {
        let packages = self.cpus.iter().map(|cpu| cpu.package).collect::<BTreeSet<_>>().len();
        let cores = pluralize(self.one_cpu_per_core().len(), "core");
        let parts = [cores, pluralize(packages, "package"), pluralize(self.nodes.len(), "NUMA node")];
        (!self.cpus.is_empty()).then(|| format!("{} on {}", self.cpus.len(), parts.join(", ")))
    }

    /// The CPUs for `threads` threads: whole cores first, then their other threads, then round again.
    pub fn cpus_for(&self, threads: usize) -> Vec<u32> {
        let first = self.one_cpu_per_core();
        let rest = self.cpus.iter().map(|cpu| cpu.id).filter(|id| !first.contains(id));
        let order: Vec<u32> = first.iter().copied().chain(rest).collect();
        order.iter().copied().cycle().take(if order.is_empty() { 0 } else { threads }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_fill_cores_before_they_share_them() {
        let cpu = |id, core| Cpu { id, core, package: 0, node: 0 };
        let facts = Facts { cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 1), cpu(3, 1)], ..Facts::default() };
        assert_eq!(facts.cpus_for(2), [0, 2]);
        assert_eq!(facts.cpus_for(6), [0, 2, 1, 3, 0, 2]);
        assert_eq!(Facts::default().cpus_for(3), [0u32; 0]);
    }
}
