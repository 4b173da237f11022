//! Facts: the properties of a machine that plan expansion depends on, read once per worker.

pub mod caches;
pub mod memory;
pub mod topology;
pub mod virtualisation;

mod cpuid;

use wb_model::Facts;

pub use wb_model::cpu_list;

use crate::SysRoot;
use crate::proc::cpuinfo::CpuInfo;

/// Reads the facts of a machine. Values that cannot be read stay empty: a container may hide all of them.
pub fn facts(root: &SysRoot) -> Facts {
    let cpuinfo = CpuInfo::read(root);
    let cpus = topology::cpus(root, &cpuinfo);
    let memory = memory::total(root);
    Facts {
        hostname: root.text("/proc/sys/kernel/hostname").unwrap_or_default(),
        kernel: root.text("/proc/sys/kernel/osrelease").unwrap_or_default(),
        arch: arch(root),
        nodes: topology::nodes(root, &cpus, memory),
        caches: caches::caches(root, &cpus, &cpuinfo),
        cpus,
        memory,
        memory_available: memory::available(root),
        hypervisor: virtualisation::hypervisor(root, &cpuinfo),
        emulated: virtualisation::emulated(root, &cpuinfo),
        boot_id: root.text("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
        cpu_model: cpuinfo.model,
        cpu_flags: cpuinfo.flags,
    }
}

/// The machine's architecture; kernels before 6.1 report it by system call only.
fn arch(root: &SysRoot) -> String {
    let by_uname = || root.is_real().then(|| rustix::system::uname().machine().to_string_lossy().into_owned());
    root.text("/proc/sys/kernel/arch").ok().or_else(by_uname).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use wb_model::Bytes;
    use wb_model::facts::CacheKind;

    use super::*;
    use crate::fake_root::{self, FakeRoot};

    #[test]
    fn a_laptop_is_read() {
        let facts = facts(&fake_root::laptop().root());
        assert_eq!(facts.hostname, "lap");
        assert_eq!(facts.arch, "x86_64");
        assert_eq!(facts.cpu_model, "Intel(R) Core(TM) i7-8650U CPU @ 1.90GHz");
        assert!(facts.cpu_flags.contains("avx2"));
        assert_eq!(facts.cpus.len(), 8);
        assert_eq!(facts.one_cpu_per_core(), [0, 1, 2, 3]);
        assert_eq!(facts.nodes.len(), 1);
        assert_eq!(facts.last_level_cache(), "8m".parse().unwrap());
        let l1: Vec<_> = facts.caches.iter().filter(|cache| cache.level == 1).collect();
        assert_eq!(l1.len(), 8, "data and instructions of four cores");
        assert_eq!(l1[0].cpus, [0, 4]);
        assert_eq!((facts.hypervisor, facts.emulated), (None, false));
        assert_eq!(facts.memory, Bytes(16_000_000 << 10));
        assert_eq!(facts.memory_available, Bytes(12_000_000 << 10));
    }

    #[test]
    fn a_server_with_two_sockets_is_read() {
        let facts = facts(&fake_root::server().root());
        assert_eq!(facts.cpus.len(), 16);
        assert_eq!(facts.one_cpu_per_core(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(facts.nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(facts.nodes[1].cpus, [4, 5, 6, 7, 12, 13, 14, 15]);
        assert_eq!(facts.nodes[1].memory, Bytes(64 << 30));
        assert!(facts.cpus.iter().all(|cpu| cpu.package == cpu.node));
        assert_eq!(facts.caches.iter().filter(|cache| cache.level == 3).count(), 2);
    }

    #[test]
    fn an_arm_board_is_named_by_part_and_has_unique_cores() {
        let facts = facts(&fake_root::arm().root());
        assert_eq!(facts.arch, "aarch64");
        assert_eq!(facts.cpu_model, "ARM Cortex-A53 + ARM Cortex-A72");
        assert!(facts.cpu_flags.contains("asimd"));
        assert_eq!(facts.one_cpu_per_core(), [0, 1, 2, 3], "core ids that repeat in each cluster");
        assert!(facts.caches.iter().any(|cache| cache.level == 2 && cache.kind == CacheKind::Unified));
    }

    #[test]
    fn offline_cpus_are_left_out() {
        let fake = fake_root::laptop().file("/sys/devices/system/cpu/online", "0-2,4");
        let facts = facts(&fake.root());
        assert_eq!(facts.cpus.iter().map(|cpu| cpu.id).collect::<Vec<_>>(), [0, 1, 2, 4]);
        assert_eq!(facts.nodes[0].cpus, [0, 1, 2, 4]);
        assert_eq!(facts.one_cpu_per_core(), [0, 1, 2]);
    }

    #[test]
    fn a_container_without_sys_has_cpus_a_node_and_a_cache() {
        let facts = facts(&fake_root::container().root());
        assert_eq!(facts.cpus.len(), 2);
        assert_eq!(facts.nodes.len(), 1);
        assert_eq!(facts.nodes[0].memory, facts.memory);
        assert_eq!(facts.last_level_cache(), "36608k".parse().unwrap());
        assert_eq!(facts.memory_available, "768m".parse().unwrap(), "headroom of the cgroup");
        assert_eq!(facts.hypervisor.as_deref(), Some("unnamed"));
    }

    // For processors by AMD, `cache size` in /proc/cpuinfo is that of the second level.
    #[test]
    fn without_sys_the_cache_of_no_other_vendor_is_taken_for_the_last_level() {
        let container = fake_root::container();
        let cpuinfo = container.root().text("/proc/cpuinfo").unwrap();
        for vendor in ["AuthenticAMD", "HygonGenuine", "CentaurHauls", ""] {
            let cpuinfo = cpuinfo.replace("GenuineIntel", vendor);
            let facts = facts(&fake_root::container().file("/proc/cpuinfo", cpuinfo).root());
            assert_eq!((facts.caches.len(), facts.last_level_cache()), (0, Bytes(0)), "{vendor}");
        }
    }

    #[test]
    fn an_empty_root_gives_empty_facts() {
        assert_eq!(facts(&FakeRoot::new().root()), Facts::default());
    }

    #[test]
    fn this_machine_has_cpus_and_memory() {
        let facts = facts(&SysRoot::real());
        assert!(!facts.cpus.is_empty() && !facts.nodes.is_empty() && facts.memory > Bytes(0));
        assert!(facts.memory_available <= facts.memory);
    }
}
