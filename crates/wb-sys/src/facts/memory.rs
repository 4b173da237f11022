//! How much memory there is, and how much of it can be had.

use std::collections::BTreeMap;

use wb_model::Bytes;

use crate::SysRoot;

/// The sizes of `/proc/meminfo`, or a node's `meminfo`, by name. Counts without a unit are left out.
pub fn meminfo(text: &str) -> BTreeMap<String, Bytes> {
    let sizes = text.lines().filter_map(|line| {
        let (name, size) = line.split_once(':')?;
        let kilobytes: u64 = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some((name.split_whitespace().last()?.to_owned(), Bytes(kilobytes.checked_mul(1024)?)))
    });
    sizes.collect()
}

/// Memory in all.
pub fn total(root: &SysRoot) -> Bytes {
    size(root, "/proc/meminfo", "MemTotal")
}

/// Memory in all of one node. That of the only node is all: what a node says of itself can still be
/// growing, where the kernel prepares memory as it is first used.
pub fn of_node(root: &SysRoot, node: u32) -> Bytes {
    if root.numbered_entries("/sys/devices/system/node", "node").len() == 1 {
        return total(root);
    }
    size(root, &format!("/sys/devices/system/node/node{node}/meminfo"), "MemTotal")
}

/// Memory that this process can have without swapping: what the system has, or what is left to its
/// cgroup where that is less.
pub fn available(root: &SysRoot) -> Bytes {
    let system = size(root, "/proc/meminfo", "MemAvailable");
    cgroup_headroom(root).map_or(system, |left| left.min(system))
}

fn size(root: &SysRoot, path: &str, name: &str) -> Bytes {
    let sizes = root.text(path).map(|text| meminfo(&text)).unwrap_or_default();
    sizes.get(name).copied().unwrap_or_default()
}

/// Limit, use and cache of the tightest memory cgroup that this process is in. A cgroup namespace shows
/// its own root as `/`, so the folders above that are named but not there are passed over.
fn cgroup_headroom(root: &SysRoot) -> Option<Bytes> {
    let membership = root.text("/proc/self/cgroup").ok()?;
    let groups = membership.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        match controllers {
            "" => Some(("/sys/fs/cgroup", path, ["memory.max", "memory.current", "inactive_file"])),
            _ if controllers.split(',').any(|name| name == "memory") => Some((
                "/sys/fs/cgroup/memory",
                path,
                ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"],
            )),
            _ => None,
        }
    });
    groups.flat_map(|(mount, path, names)| hierarchy_headroom(root, mount, path, names)).min()
}

fn hierarchy_headroom(root: &SysRoot, mount: &str, path: &str, [limit, used, cached]: [&str; 3]) -> Vec<Bytes> {
    let left = |folder: String| {
        let limit: u64 = root.number(format!("{folder}/{limit}")).ok()?;
        let used: u64 = root.number(format!("{folder}/{used}")).ok()?;
        let stat = root.text(format!("{folder}/memory.stat")).unwrap_or_default();
        let cached = stat.lines().find_map(|line| line.strip_prefix(cached)?.trim().parse::<u64>().ok()).unwrap_or(0);
        Some(Bytes(limit.saturating_sub(used.saturating_sub(cached))))
    };
    let mut path = path.trim_end_matches('/');
    let mut found = Vec::new();
    loop {
        found.extend(left(format!("{mount}{path}")));
        match path.rfind('/') {
            Some(parent) => path = &path[..parent],
            None => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn sizes_are_read_in_bytes_of_the_system_and_of_a_node() {
        let sizes = meminfo("MemTotal:  16 kB\nHugePages_Total: 4\nNode 1 MemFree: 2 kB\n");
        assert_eq!(sizes.len(), 2);
        assert_eq!(sizes["MemTotal"], Bytes(16 << 10));
        assert_eq!(sizes["MemFree"], Bytes(2 << 10));
    }

    #[test]
    fn the_tightest_cgroup_counts() {
        let made = FakeRoot::new()
            .file("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB")
            .file("/proc/self/cgroup", "4:memory:/a/b\n0::/")
            .file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576")
            .file("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "524288")
            .file("/sys/fs/cgroup/memory/a/memory.stat", "total_inactive_file 262144")
            .file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712")
            .file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "524288");
        assert_eq!(available(&made.root()), Bytes(768 << 10));
    }

    proptest! {
        #[test]
        fn no_text_panics(info: String, membership: String, limit: String) {
            let _ = meminfo(&info);
            let made = FakeRoot::new()
                .file("/proc/self/cgroup", &membership)
                .file("/sys/fs/cgroup/memory.max", &limit)
                .file("/sys/fs/cgroup/memory.current", &limit);
            let _ = available(&made.root());
        }
    }
}
