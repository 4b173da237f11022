//! CPU caches, each listed once however many CPUs share it.

use wb_model::Bytes;
use wb_model::facts::{Cache, CacheKind, Cpu};

use crate::SysRoot;
use crate::proc::cpuinfo::CpuInfo;

/// The caches of `cpus`, smallest level first.
pub fn caches(root: &SysRoot, cpus: &[Cpu], cpuinfo: &CpuInfo) -> Vec<Cache> {
    let mut caches: Vec<Cache> = Vec::new();
    for cpu in cpus {
        let folder = format!("/sys/devices/system/cpu/cpu{}/cache", cpu.id);
        for index in root.numbered_entries(&folder, "index") {
            if let Some(cache) = cache(root, &format!("{folder}/index{index}"), cpu.id)
                && !caches.contains(&cache)
            {
                caches.push(cache);
            }
        }
    }
    caches.sort_by_key(|cache| (cache.level, cache.kind == CacheKind::Instruction, cache.cpus.first().copied()));
    if caches.is_empty() {
        caches.extend(last_level(cpus, cpuinfo));
    }
    caches
}

fn cache(root: &SysRoot, folder: &str, cpu: u32) -> Option<Cache> {
    Some(Cache {
        level: root.number(format!("{folder}/level")).ok()?,
        kind: match root.text(format!("{folder}/type")).ok()?.as_str() {
            "Data" => CacheKind::Data,
            "Instruction" => CacheKind::Instruction,
            _ => CacheKind::Unified,
        },
        size: root.text(format!("{folder}/size")).ok()?.parse().ok()?,
        cpus: root
            .numbers(format!("{folder}/shared_cpu_list"))
            .ok()
            .filter(|cpus| !cpus.is_empty())
            .unwrap_or(vec![cpu]),
    })
}

/// The last-level cache by `/proc/cpuinfo`, for containers that hide `/sys`. It reports a size without its level: the
/// last one on Intel (`init_intel_cacheinfo` in the kernel), the second one on AMD and Hygon
/// (`cpu_detect_cache_sizes`). On others the level is unknown, and so is the cache.
fn last_level(cpus: &[Cpu], cpuinfo: &CpuInfo) -> Option<Cache> {
    if cpuinfo.vendor.as_deref() != Some("GenuineIntel") {
        return None;
    }
    let size = cpuinfo.cache.filter(|size| *size > Bytes(0) && !cpus.is_empty())?;
    Some(Cache { level: 3, kind: CacheKind::Unified, size, cpus: cpus.iter().map(|cpu| cpu.id).collect() })
}
