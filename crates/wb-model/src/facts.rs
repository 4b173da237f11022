//! Facts of a worker's machine, used to resolve plans and to interpret results.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, pluralize};

/// Hardware and kernel of a worker, as far as plans depend on them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Its host name.
    pub hostname: String,
    /// Kernel release, as printed by `uname -r`.
    pub kernel: String,
    /// Machine architecture, as printed by `uname -m`.
    pub arch: String,
    /// Model name of the processor.
    pub cpu_model: String,
    /// Features of the processor, by the kernel's names: `avx2`, `avx512f`.
    pub cpu_flags: BTreeSet<String>,
    /// Online CPUs that this program may use.
    pub cpus: Vec<Cpu>,
    /// NUMA nodes that have memory or CPUs.
    pub nodes: Vec<Node>,
    /// Caches, without duplicates.
    pub caches: Vec<Cache>,
    /// Total memory.
    pub memory: Bytes,
    /// Memory available without swapping.
    pub memory_available: Bytes,
    /// The hypervisor it runs under, if one is detected.
    pub hypervisor: Option<String>,
    /// Whether its instructions are emulated in software.
    pub emulated: bool,
    /// The kernel's id of this boot.
    pub boot_id: String,
}

/// A CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// Number assigned by the kernel.
    pub id: u32,
    /// The core it is a thread of, within its package.
    pub core: u32,
    /// The package (socket) it is on.
    pub package: u32,
    /// The NUMA node it is on.
    pub node: u32,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Number assigned by the kernel.
    pub id: u32,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// Its memory.
    pub memory: Bytes,
}

/// A cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cache {
    /// Its level, from 1.
    pub level: u8,
    /// Its kind.
    pub kind: CacheKind,
    /// Its size.
    pub size: Bytes,
    /// The CPUs that share it.
    pub cpus: Vec<u32>,
}

/// Kind of a cache.
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
    /// Returns the size of the largest last-level cache; zero if none is known.
    pub fn last_level_cache(&self) -> Bytes {
        self.caches.iter().max_by_key(|cache| (cache.level, cache.size)).map(|cache| cache.size).unwrap_or_default()
    }

    /// Returns one CPU of each core, in order, for threads that must not share a core.
    pub fn one_cpu_per_core(&self) -> Vec<u32> {
        let mut seen = BTreeSet::new();
        self.cpus.iter().filter(|cpu| seen.insert((cpu.package, cpu.core))).map(|cpu| cpu.id).collect()
    }

    /// Describes the CPU topology: `16 on 8 cores, 1 package, 1 NUMA node`; none if no CPU is known.
    pub fn topology(&self) -> Option<String> {
        let packages = self.cpus.iter().map(|cpu| cpu.package).collect::<BTreeSet<_>>().len();
        let cores = pluralize(self.one_cpu_per_core().len(), "core");
        let parts = [cores, pluralize(packages, "package"), pluralize(self.nodes.len(), "NUMA node")];
        (!self.cpus.is_empty()).then(|| format!("{} on {}", self.cpus.len(), parts.join(", ")))
    }

    /// Returns the CPUs for a number of threads: one per core first, then the sibling threads, then cyclically.
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
