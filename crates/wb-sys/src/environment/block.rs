//! Block devices and how requests reach them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use super::memory::selected_option;
use crate::SysRoot;

/// A block device and how requests reach it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct BlockDevice {
    /// Its maker's name for it.
    pub model: Option<String>,
    /// Its size.
    pub size: Bytes,
    /// Whether it has turning disks.
    pub rotational: Option<bool>,
    /// What orders requests.
    pub scheduler: Option<String>,
    /// Requests that may wait.
    pub nr_requests: Option<u64>,
    /// What is read ahead, in KiB.
    pub read_ahead_kb: Option<u64>,
    /// The largest request, in KiB.
    pub max_sectors_kb: Option<u64>,
    /// The delay above which background writes are held back, in µs; 0 is never.
    pub wbt_lat_usec: Option<u64>,
    /// Whether it says that it caches writes: `write back`, `write through`.
    pub write_cache: Option<String>,
    /// Which requests are not merged: 0 all are, 2 none.
    pub nomerges: Option<u64>,
    /// On which CPU a request ends: 0 any, 1 of the same group, 2 the same.
    pub rq_affinity: Option<u64>,
    /// The smallest block that can be addressed.
    pub logical_block: Option<Bytes>,
}

/// The devices that hold something, without loop devices, RAM disks and compressed memory.
pub fn names(root: &SysRoot) -> Vec<String> {
    let real = |name: &String| {
        !["loop", "ram", "zram", "nbd", "sr", "fd"].iter().any(|kind| {
            name.strip_prefix(kind).is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
        })
    };
    let holds = |name: &String| root.number::<u64>(format!("/sys/block/{name}/size")).is_ok_and(|size| size > 0);
    root.list("/sys/block").unwrap_or_default().into_iter().filter(real).filter(holds).collect()
}

/// Those devices, by name.
pub fn devices(root: &SysRoot) -> BTreeMap<String, BlockDevice> {
    names(root).into_iter().map(|name| (name.clone(), device(root, &name))).collect()
}

fn device(root: &SysRoot, name: &str) -> BlockDevice {
    let text = |file: &str| root.text(format!("/sys/block/{name}/{file}")).ok().filter(|text| !text.is_empty());
    let number = |file: &str| text(file)?.parse::<u64>().ok();
    BlockDevice {
        model: text("device/model"),
        // The kernel counts in units of 512 bytes whatever the device's blocks are.
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
    fn a_disk_is_read_and_a_loop_device_is_not() {
        let devices = devices(&fake_root::laptop().root());
        assert_eq!(devices.keys().collect::<Vec<_>>(), ["nvme0n1"]);
        let disk = &devices["nvme0n1"];
        assert_eq!(disk.size, Bytes(1_000_215_216 * 512));
        assert_eq!((disk.rotational, disk.scheduler.as_deref()), (Some(false), Some("none")));
    }
}
