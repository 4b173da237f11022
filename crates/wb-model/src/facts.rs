//! Facts of a worker's machine, used to resolve plans and to interpret results.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, cpu_list, pluralize};

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
    /// Describes each property that has another value in a later reading: `CPUs: 0-1 before, 0 now`. The available
    /// memory always varies and is not compared.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        // Destructured, so that a new property is compared or left out on purpose.
        let Self {
            hostname,
            kernel,
            arch,
            cpu_model,
            cpu_flags,
            cpus,
            nodes,
            caches,
            memory,
            memory_available: _,
            hypervisor,
            emulated,
            boot_id,
        } = self;
        let text = |name: &str, before: &str, after: &str| {
            (before != after).then(|| format!("{name}: {} before, {} now", or_none(before), or_none(after)))
        };
        let ids = |facts: &Self| cpu_list::format(&facts.cpus.iter().map(|cpu| cpu.id).collect::<Vec<_>>());
        let layout = |name: &str, differs: bool| differs.then(|| format!("{name} differ"));
        let flags = cpu_flags.symmetric_difference(&now.cpu_flags).cloned().collect::<Vec<_>>().join(" ");
        // A CPU that is switched off is missing everywhere else, too.
        let same_cpus = ids(self) == ids(now);
        let all = [
            text("host name", hostname, &now.hostname),
            text("kernel", kernel, &now.kernel),
            text("architecture", arch, &now.arch),
            text("processor", cpu_model, &now.cpu_model),
            (!flags.is_empty()).then(|| format!("processor features differ in {flags}")),
            text("CPUs", &ids(self), &ids(now)),
            layout("cores of the CPUs", same_cpus && *cpus != now.cpus),
            layout("NUMA nodes", same_cpus && *nodes != now.nodes && *memory == now.memory),
            layout("caches", same_cpus && *caches != now.caches),
            text("memory", &memory.to_string(), &now.memory.to_string()),
            text("hypervisor", hypervisor.as_deref().unwrap_or(""), now.hypervisor.as_deref().unwrap_or("")),
            (*emulated != now.emulated).then(|| {
                if now.emulated {
                    "its instructions are emulated now".to_owned()
                } else {
                    "its instructions are not emulated any more".to_owned()
                }
            }),
            text("boot", boot_id, &now.boot_id),
        ];
        all.into_iter().flatten().collect()
    }

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

fn or_none(value: &str) -> &str {
    if value.is_empty() { "none" } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_but_the_available_memory_is_compared() {
        let cpu = |id, core| Cpu { id, core, package: 0, node: 0 };
        let before = Facts { cpus: vec![cpu(0, 0), cpu(1, 1)], memory: Bytes(8 << 30), ..Facts::default() };
        assert_eq!(before.differences(&before), [""; 0]);
        let serde_json::Value::Object(fields) = serde_json::to_value(&before).unwrap() else { panic!("an object") };
        for (name, value) in fields {
            let other = match &value {
                serde_json::Value::Bool(value) => (!value).into(),
                serde_json::Value::Array(_) => match name.as_str() {
                    "cpu_flags" => serde_json::json!(["avx2"]),
                    "cpus" => serde_json::json!([cpu(0, 0)]),
                    "nodes" => serde_json::json!([{"id": 0, "cpus": [0], "memory": "1g"}]),
                    _ => serde_json::json!([{"level": 1, "kind": "data", "size": "32k", "cpus": [0]}]),
                },
                _ if name.starts_with("memory") => "4g".into(),
                _ => "other".into(),
            };
            let mut changed = serde_json::to_value(&before).unwrap();
            changed[&name] = other;
            let changed: Facts = serde_json::from_value(changed).unwrap_or_else(|error| panic!("{name}: {error}"));
            let expected = usize::from(name != "memory_available");
            assert_eq!(before.differences(&changed).len(), expected, "{name}: {:?}", before.differences(&changed));
        }
        let one_cpu = Facts { cpus: vec![cpu(0, 0)], ..before.clone() };
        assert_eq!(before.differences(&one_cpu), ["CPUs: 0-1 before, 0 now"]);
    }

    #[test]
    fn threads_fill_cores_before_they_share_them() {
        let cpu = |id, core| Cpu { id, core, package: 0, node: 0 };
        let facts = Facts { cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 1), cpu(3, 1)], ..Facts::default() };
        assert_eq!(facts.cpus_for(2), [0, 2]);
        assert_eq!(facts.cpus_for(6), [0, 2, 1, 3, 0, 2]);
        assert_eq!(Facts::default().cpus_for(3), [0u32; 0]);
    }
}
