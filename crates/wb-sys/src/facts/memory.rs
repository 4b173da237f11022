use wb_model::Bytes;

use crate::SysRoot;
use crate::proc::cgroup::{self, CgroupMembership};
use crate::proc::meminfo;

pub fn total(root: &SysRoot) -> Bytes {
    size(root, "/proc/meminfo", "MemTotal")
}

/// A single node has all of the system's memory: its own `meminfo` may still grow where the kernel initialises memory
/// lazily.
pub fn node_total(root: &SysRoot, node: u32) -> Bytes {
    if root.numbered_entries("/sys/devices/system/node", "node").len() == 1 {
        return total(root);
    }
    size(root, &format!("/sys/devices/system/node/node{node}/meminfo"), "MemTotal")
}

/// What this process can allocate without swapping: the system's available memory, or its cgroup's headroom if less.
pub fn available(root: &SysRoot) -> Bytes {
    let system = size(root, "/proc/meminfo", "MemAvailable");
    cgroup_headroom(root).map_or(system, |headroom| headroom.min(system))
}

fn size(root: &SysRoot, path: &str, name: &str) -> Bytes {
    root.text(path).ok().and_then(|text| meminfo::size(&text, name)).unwrap_or_default()
}

/// The smallest headroom (limit − usage + inactive file cache) of the memory cgroups of this process. A cgroup
/// namespace shows its own root as `/`, so folders that do not exist are skipped.
fn cgroup_headroom(root: &SysRoot) -> Option<Bytes> {
    let text = root.text("/proc/self/cgroup").ok()?;
    cgroup::memberships(&text).filter_map(|group| group_headroom(root, group)).min()
}

/// The smallest headroom of a group and its ancestors.
fn group_headroom(root: &SysRoot, group: CgroupMembership) -> Option<Bytes> {
    let (mount, [limit, used, cached]) = if group.is_unified() {
        ("/sys/fs/cgroup", ["memory.max", "memory.current", "inactive_file"])
    } else if group.has_controller("memory") {
        ("/sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"])
    } else {
        return None;
    };
    let headroom = |path: &str| {
        let folder = format!("{mount}{path}");
        let limit: u64 = root.number(format!("{folder}/{limit}")).ok()?;
        let used: u64 = root.number(format!("{folder}/{used}")).ok()?;
        let stat = root.text(format!("{folder}/memory.stat")).unwrap_or_default();
        let cached = stat.lines().find_map(|line| line.strip_prefix(cached)?.trim().parse::<u64>().ok()).unwrap_or(0);
        Some(Bytes(limit.saturating_sub(used.saturating_sub(cached))))
    };
    group.ancestors().filter_map(headroom).min()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn the_tightest_cgroup_limits_available_memory() {
        let fake = FakeRoot::new()
            .file("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB")
            .file("/proc/self/cgroup", "4:memory:/a/b\n0::/")
            .file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576")
            .file("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "524288")
            .file("/sys/fs/cgroup/memory/a/memory.stat", "total_inactive_file 262144")
            .file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712")
            .file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "524288");
        assert_eq!(available(&fake.root()), Bytes(768 << 10));
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(membership: String, limit: String) {
            let fake = FakeRoot::new()
                .file("/proc/self/cgroup", &membership)
                .file("/sys/fs/cgroup/memory.max", &limit)
                .file("/sys/fs/cgroup/memory.current", &limit);
            let _ = available(&fake.root());
        }
    }
}
