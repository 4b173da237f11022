//! Block devices and the settings of their request queues.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use super::memory::selected_option;
use crate::SysRoot;

/// A block device and the settings of its request queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct BlockDevice {
    /// Model name.
    pub model: Option<String>,
    /// Capacity.
    pub size: Bytes,
    /// Whether it is a rotating disk.
    pub rotational: Option<bool>,
    /// I/O scheduler.
    pub scheduler: Option<String>,
    /// Maximum number of queued requests.
    pub nr_requests: Option<u64>,
    /// Read-ahead size, in KiB.
    pub read_ahead_kb: Option<u64>,
    /// Maximum size of a request, in KiB.
    pub max_sectors_kb: Option<u64>,
    /// Target latency of writeback throttling, in µs; 0 disables it.
    pub wbt_lat_usec: Option<u64>,
    /// Write cache mode reported by the device: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Request merging: 0 enabled, 1 simple merges only, 2 disabled.
    pub nomerges: Option<u64>,
    /// CPU that completes a request: 0 any, 1 one that shares a cache with the submitter, 2 the submitter.
    pub rq_affinity: Option<u64>,
    /// Logical block size.
    pub logical_block: Option<Bytes>,
}

/// The names of the block devices; loop, RAM, zram, nbd, optical and floppy devices are excluded.
pub(crate) fn disks(root: &SysRoot) -> impl Iterator<Item = String> {
    let is_disk = |name: &String| {
        !["loop", "ram", "zram", "nbd", "sr", "fd"]
            .iter()
            .any(|kind| name.strip_prefix(kind).is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())))
    };
    root.list("/sys/block").unwrap_or_default().into_iter().filter(is_disk)
}

/// The names of those block devices that have a non-zero size.
pub fn names(root: &SysRoot) -> Vec<String> {
    let has_capacity = |name: &String| root.number::<u64>(format!("/sys/block/{name}/size")).is_ok_and(|size| size > 0);
    disks(root).filter(has_capacity).collect()
}

pub fn devices(root: &SysRoot) -> BTreeMap<String, BlockDevice> {
    names(root).into_iter().map(|name| (name.clone(), device(root, &name))).collect()
}

fn device(root: &SysRoot, name: &str) -> BlockDevice {
    let text = |file: &str| root.text(format!("/sys/block/{name}/{file}")).ok().filter(|text| !text.is_empty());
    let number = |file: &str| text(file)?.parse::<u64>().ok();
    BlockDevice {
        model: text("device/model"),
        // The kernel counts in units of 512 bytes whatever the device's block size.
        size: Bytes(number("size").unwrap_or(0).saturating_mul(512)),
        rotational: number("queue/rotational").map(|rotational| rotational != 0),
        scheduler: text("queue/scheduler").map(|schedulers| selected_option(&schedulers).to_owned()),
        nr_requests: number("queue/nr_requests"),
        read_ahead_kb: number("queue/read_ahead_kb"),
        max_sectors_kb: number("queue/max_sectors_kb"),
        wbt_lat_usec: number("queue/wbt_lat_usec"),
        write_cache: text("queue/write_cache"),
        nomerges: number("queue/nomerges"),
        rq_affinity: number("queue/rq_affinity"),
        logical_block: number("queue/logical_block_size").map(Bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root;

    #[test]
    fn disks_are_listed_and_loop_devices_are_not() {
        let devices = devices(&fake_root::laptop().root());
        assert_eq!(devices.keys().collect::<Vec<_>>(), ["nvme0n1"]);
        let disk = &devices["nvme0n1"];
        assert_eq!(disk.size, Bytes(1_000_215_216 * 512));
        assert_eq!((disk.rotational, disk.scheduler.as_deref()), (Some(false), Some("none")));
    }
}
