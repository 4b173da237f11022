//! Limits of memory: those of this process's control group and of the groups above it, and new groups that have one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::SysRoot;

use super::CgroupVersion;
use super::mounts::hierarchies;

/// From this limit on, version 1 means none: it is the highest multiple of a page that fits into 63 bits.
const UNLIMITED: u64 = i64::MAX as u64 & !0xffff;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Memory that its processes can have together, page cache included, in bytes.
    pub limit: u64,
    /// The memory in use without page cache, which could be freed, in bytes.
    pub used: u64,
    /// What can still be swapped out, in bytes, as far as the system has swap; `None` without a limit.
    pub swap: Option<u64>,
}

impl MemoryLimit {
    /// What can still be used without swapping, in bytes.
    pub fn available(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// The limits of this process's group and of those above it, as far as they have one.
pub fn memory_limits(root: &SysRoot) -> Vec<MemoryLimit> {
    let mut limits = Vec::new();
    for hierarchy in hierarchies(root) {
        let read = match hierarchy.version {
            CgroupVersion::V2 => read_v2,
            CgroupVersion::V1 if hierarchy.controllers.iter().any(|controller| controller == "memory") => read_v1,
            CgroupVersion::V1 => continue,
        };
        let is_group = |folder: &&Path| folder.join("cgroup.procs").exists();
        limits.extend(hierarchy.folder.ancestors().take_while(is_group).filter_map(read));
    }
    limits
}

/// A control group below this process's own with a limit of memory, removed on drop if it is empty.
#[derive(Debug)]
pub struct LimitedGroup {
    folder: PathBuf,
}

impl LimitedGroup {
    /// Creates a group with a limit in bytes, which swap is not part of. Fails if no hierarchy has a memory controller
    /// for new groups.
    pub fn create(root: &SysRoot, name: &str, limit: u64) -> io::Result<Self> {
        let mut outcome =
            Err(io::Error::new(io::ErrorKind::Unsupported, "no memory controller for new control groups"));
        for hierarchy in hierarchies(root) {
            let file = match hierarchy.version {
                CgroupVersion::V2 => "memory.max",
                CgroupVersion::V1 if hierarchy.controllers.iter().any(|controller| controller == "memory") => {
                    "memory.limit_in_bytes"
                }
                CgroupVersion::V1 => continue,
            };
            outcome = Self::create_in(hierarchy.folder.join(name), file, limit);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    fn create_in(folder: PathBuf, file: &str, limit: u64) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        let group = Self { folder };
        fs::write(group.folder.join(file), limit.to_string())?;
        Ok(group)
    }

    /// The file through which a process joins the group by writing `0`, or its id.
    pub fn procs(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        // A group that still has processes stays.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// memory.max, or memory.high, above which the kernel throttles (cgroup-v2.rst).
fn read_v2(folder: &Path) -> Option<MemoryLimit> {
    let number = |name: &str| read_number(&folder.join(name));
    let limit = number("memory.max").into_iter().chain(number("memory.high")).min()?;
    let swap = number("memory.swap.max").map(|max| max.saturating_sub(number("memory.swap.current").unwrap_or(0)));
    let cache = page_cache(folder, ["inactive_file ", "active_file "]);
    Some(MemoryLimit { limit, used: number("memory.current")?.saturating_sub(cache), swap })
}

/// memory.limit_in_bytes; memory.memsw has the limit of memory and swap together (cgroup-v1/memory.rst).
fn read_v1(folder: &Path) -> Option<MemoryLimit> {
    let number = |name: &str| read_number(&folder.join(name)).filter(|number| *number < UNLIMITED);
    let limit = number("memory.limit_in_bytes")?;
    let usage = number("memory.usage_in_bytes")?;
    let swap = number("memory.memsw.limit_in_bytes").map(|both| {
        let swapped = number("memory.memsw.usage_in_bytes").unwrap_or(0).saturating_sub(usage);
        both.saturating_sub(limit).saturating_sub(swapped)
    });
    let cache = page_cache(folder, ["total_inactive_file ", "total_active_file "]);
    Some(MemoryLimit { limit, used: usage.saturating_sub(cache), swap })
}

fn page_cache(folder: &Path, fields: [&str; 2]) -> u64 {
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let value = |line: &str| fields.iter().find_map(|field| line.strip_prefix(field)?.parse::<u64>().ok());
    stat.lines().filter_map(value).sum()
}

/// The number in a file; `None` if it is missing or `max`.
fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn limits_of_version_1_are_found_up_to_the_root() {
        let fake = FakeRoot::new()
            .file("/proc/self/mountinfo", "1 0 0:1 / /c/memory rw - cgroup cgroup rw,memory\n")
            .file("/proc/self/cgroup", "4:memory:/a/b\n")
            .file("/c/memory/cgroup.procs", "")
            .file("/c/memory/memory.limit_in_bytes", "9223372036854771712\n")
            .file("/c/memory/memory.usage_in_bytes", "99\n")
            .file("/c/memory/a/cgroup.procs", "")
            .file("/c/memory/a/memory.limit_in_bytes", "1000\n")
            .file("/c/memory/a/memory.usage_in_bytes", "600\n")
            .file("/c/memory/a/memory.memsw.limit_in_bytes", "1500\n")
            .file("/c/memory/a/memory.memsw.usage_in_bytes", "700\n")
            .file("/c/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 100\ntotal_active_file 50\n")
            .file("/c/memory/a/b/cgroup.procs", "")
            .file("/c/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        let limits = memory_limits(&fake.root());
        assert_eq!(limits, [MemoryLimit { limit: 1000, used: 450, swap: Some(400) }]);
        assert_eq!(limits[0].available(), 550);
    }

    #[test]
    fn limits_of_version_2_are_the_lower_of_max_and_high() {
        let fake = FakeRoot::new()
            .file("/proc/self/mountinfo", "1 0 0:1 / /c rw - cgroup2 cgroup2 rw\n")
            .file("/proc/self/cgroup", "0::/a\n")
            .file("/c/cgroup.procs", "")
            .file("/c/a/cgroup.procs", "")
            .file("/c/a/memory.max", "max\n")
            .file("/c/a/memory.high", "5000\n")
            .file("/c/a/memory.current", "4000\n")
            .file("/c/a/memory.stat", "anon 1\ninactive_file 1000\n")
            .file("/c/a/memory.swap.max", "max\n");
        assert_eq!(memory_limits(&fake.root()), [MemoryLimit { limit: 5000, used: 3000, swap: None }]);
    }
}
