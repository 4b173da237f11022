//! CPU topology: CPUs, cores, packages and NUMA nodes.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::Bytes;
use wb_model::facts::{Cpu, Node};

use super::memory;
use crate::SysRoot;
use crate::proc::cpuinfo::CpuInfo;

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// The online CPUs; on the running system only those in this process's affinity mask.
pub fn cpus(root: &SysRoot, cpuinfo: &CpuInfo) -> Vec<Cpu> {
    let mut online = root
        .numbers(format!("{CPU}/online"))
        .ok()
        .filter(|online| !online.is_empty())
        .unwrap_or_else(|| cpuinfo.processors.keys().copied().collect());
    if let Some(allowed) = affinity(root) {
        online.retain(|id| allowed.contains(id));
        if online.is_empty() {
            online = allowed.into_iter().collect();
        }
    }
    let nodes = node_of_each_cpu(root);
    let locations: Vec<CpuLocation> = online.iter().map(|&id| CpuLocation::read(root, cpuinfo, id)).collect();
    let ambiguous = has_duplicate_core_ids(&locations);
    let cpu = |location: &CpuLocation| Cpu {
        id: location.id,
        core: location.core.filter(|_| !ambiguous).unwrap_or(location.leader),
        package: location.package,
        node: nodes.get(&location.id).copied().unwrap_or(0),
    };
    locations.iter().map(cpu).collect()
}

/// The nodes that have memory or CPUs; a single node with all CPUs and memory where the kernel lists none.
pub fn nodes(root: &SysRoot, cpus: &[Cpu], memory: Bytes) -> Vec<Node> {
    let usable = |id: u32| cpus.iter().filter(move |cpu| cpu.node == id).map(|cpu| cpu.id).collect();
    let nodes: Vec<Node> = root
        .numbered_entries(NODE, "node")
        .into_iter()
        .map(|id| Node { id, cpus: usable(id), memory: memory::node_total(root, id) })
        .filter(|node| !node.cpus.is_empty() || node.memory > Bytes(0))
        .collect();
    if nodes.is_empty() && !cpus.is_empty() {
        vec![Node { id: 0, cpus: cpus.iter().map(|cpu| cpu.id).collect(), memory }]
    } else {
        nodes
    }
}

/// The CPUs that this process may run on; None for a fake root.
fn affinity(root: &SysRoot) -> Option<BTreeSet<u32>> {
    let set = root.is_real().then(|| rustix::thread::sched_getaffinity(None).ok())??;
    Some((0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect())
}

fn node_of_each_cpu(root: &SysRoot) -> BTreeMap<u32, u32> {
    let nodes = root.numbered_entries(NODE, "node").into_iter();
    let cpus = |node| root.numbers(format!("{NODE}/node{node}/cpulist")).unwrap_or_default();
    nodes.flat_map(|node| cpus(node).into_iter().map(move |cpu| (cpu, node))).collect()
}

struct CpuLocation {
    id: u32,
    package: u32,
    core: Option<u32>,
    /// First of the CPUs that share the core.
    leader: u32,
}

impl CpuLocation {
    fn read(root: &SysRoot, cpuinfo: &CpuInfo, id: u32) -> Self {
        let folder = format!("{CPU}/cpu{id}/topology");
        let (package, core) = cpuinfo.processors.get(&id).copied().unwrap_or_default();
        let siblings = ["core_cpus_list", "thread_siblings_list"];
        Self {
            id,
            package: root.number(format!("{folder}/physical_package_id")).ok().or(package).unwrap_or(0),
            core: root.number(format!("{folder}/core_id")).ok().or(core),
            leader: siblings
                .iter()
                .find_map(|name| root.numbers(format!("{folder}/{name}")).ok()?.first().copied())
                .unwrap_or(id),
        }
    }
}

/// Whether core ids are not unique in a package, as where a kernel restarts them in each cluster.
fn has_duplicate_core_ids(locations: &[CpuLocation]) -> bool {
    let mut leaders = BTreeMap::new();
    locations.iter().any(|location| {
        let core = (location.package, location.core);
        location.core.is_none() || *leaders.entry(core).or_insert(location.leader) != location.leader
    })
}
