//! CPUs, cores, packages and nodes.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::Bytes;
use wb_model::facts::{Cpu, Node};

use super::cpuinfo::CpuInfo;
use super::memory;
use crate::SysRoot;

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// The online CPUs; of the running system only those that this process may use.
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
    let places: Vec<CpuLocation> = online.iter().map(|&id| CpuLocation::read(root, cpuinfo, id)).collect();
    let ambiguous = has_duplicate_core_ids(&places);
    let cpu = |place: &CpuLocation| Cpu {
        id: place.id,
        core: place.core.filter(|_| !ambiguous).unwrap_or(place.leader),
        package: place.package,
        node: nodes.get(&place.id).copied().unwrap_or(0),
    };
    places.iter().map(cpu).collect()
}

/// The nodes that have memory or CPUs; one of all CPUs and all memory where the kernel shows none.
pub fn nodes(root: &SysRoot, cpus: &[Cpu], memory: Bytes) -> Vec<Node> {
    let usable = |id: u32| cpus.iter().filter(move |cpu| cpu.node == id).map(|cpu| cpu.id).collect();
    let nodes: Vec<Node> = root
        .numbered_entries(NODE, "node")
        .into_iter()
        .map(|id| Node { id, cpus: usable(id), memory: memory::of_node(root, id) })
        .filter(|node| !node.cpus.is_empty() || node.memory > Bytes(0))
        .collect();
    match nodes.is_empty() && !cpus.is_empty() {
        true => vec![Node { id: 0, cpus: cpus.iter().map(|cpu| cpu.id).collect(), memory }],
        false => nodes,
    }
}

/// The CPUs this process may run on, where it is a process of that system.
fn affinity(root: &SysRoot) -> Option<BTreeSet<u32>> {
    let set = root.is_real().then(|| rustix::thread::sched_getaffinity(None).ok())??;
    Some((0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect())
}

fn node_of_each_cpu(root: &SysRoot) -> BTreeMap<u32, u32> {
    let nodes = root.numbered_entries(NODE, "node").into_iter();
    let cpus = |node| root.numbers(format!("{NODE}/node{node}/cpulist")).unwrap_or_default();
    nodes.flat_map(|node| cpus(node).into_iter().map(move |cpu| (cpu, node))).collect()
}

/// Where the kernel says that a CPU is.
struct CpuLocation {
    id: u32,
    package: u32,
    core: Option<u32>,
    /// The first of the CPUs that share its core.
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

/// Whether two cores of a package have one number, as where a kernel counts them anew in each cluster.
fn has_duplicate_core_ids(places: &[CpuLocation]) -> bool {
    let mut leaders = BTreeMap::new();
    places.iter().any(|place| {
        let core = (place.package, place.core);
        place.core.is_none() || *leaders.entry(core).or_insert(place.leader) != place.leader
    })
}
