//! The block device that is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_agent::Worker;
use wb_model::Bytes;
use wb_sys::environment::memory::selected_option;
use wb_sys::proc::mountinfo::mount_of;
use wb_sys::proc::unescape;

use super::ContentionError;
use super::files::{read, read_or_empty};

/// A whole block device
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BlockDevice {
    /// Its name: `nvme0n1`
    pub name: String,
    /// Its number: `259:5`
    pub number: String,
    /// Its model; empty if it reports none
    pub model: String,
    /// The revision of its firmware; empty if it reports none
    pub firmware: String,
    /// Its size
    pub size: Bytes,
    /// Whether it has rotating disks
    pub rotational: bool,
    /// Its scheduler; empty if it has none
    pub scheduler: String,
    /// Latency in microseconds from which writeback is throttled; 0 if it is not
    pub wbt_microseconds: u64,
    /// Whether it consists of others, like LVM, RAID, encryption and loop devices
    pub composite: bool,
}

impl BlockDevice {
    /// The device of a folder; fails if it is not on a block device.
    pub async fn of_folder(worker: &Worker, folder: &str) -> Result<Self, ContentionError> {
        let error = |reason: &str| ContentionError::NoDevice { path: folder.to_owned(), reason: reason.to_owned() };
        let text = read(worker, "/proc/self/mountinfo").await?.unwrap_or_default();
        let mount = mount_of(&text, folder).ok_or_else(|| error("it is on no mounted file system"))?;
        let uevent = read(worker, &format!("/sys/dev/block/{}/uevent", mount.device)).await?;
        if let Some(name) =
            uevent.as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("DEVNAME=")))
        {
            return Self::read(worker, mount.device, name).await;
        }
        // btrfs has a number of its own, because it can have several devices; the first is its source.
        match source_device(worker, mount.source).await? {
            Some(name) => Self::named(worker, &name).await,
            None => Err(error("its file system has no block device")),
        }
    }

    /// The device with a name, or the one that a partition with this name belongs to.
    pub async fn named(worker: &Worker, name: &str) -> Result<Self, ContentionError> {
        let name = name.strip_prefix("/dev/").unwrap_or(name);
        let number = read(worker, &format!("/sys/class/block/{name}/dev")).await?;
        let number = number
            .ok_or_else(|| ContentionError::NoDevice { path: name.to_owned(), reason: "no such device".to_owned() })?;
        Self::read(worker, &number, name).await
    }

    async fn read(worker: &Worker, number: &str, name: &str) -> Result<Self, ContentionError> {
        let folder = format!("/sys/dev/block/{number}");
        if read(worker, &format!("{folder}/partition")).await?.is_some() {
            let whole = read_or_empty(worker, &format!("{folder}/../dev")).await?;
            let text = read_or_empty(worker, &format!("{folder}/../uevent")).await?;
            let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME=")).unwrap_or(name);
            return Self::read_whole(worker, &whole, name).await;
        }
        Self::read_whole(worker, number, name).await
    }

    async fn read_whole(worker: &Worker, number: &str, name: &str) -> Result<Self, ContentionError> {
        let folder = format!("/sys/dev/block/{number}");
        let text = async |file: &str| read_or_empty(worker, &format!("{folder}/{file}")).await;
        let firmware = text("device/firmware_rev").await?;
        let firmware = if firmware.is_empty() { text("device/rev").await? } else { firmware };
        let sectors: u64 = text("size").await?.parse().unwrap_or_default();
        let slaves = super::files::names(worker, &format!("{folder}/slaves")).await?;
        Ok(Self {
            name: name.to_owned(),
            number: number.to_owned(),
            model: text("device/model").await?,
            firmware,
            size: Bytes(sectors * 512),
            rotational: text("queue/rotational").await? == "1",
            scheduler: selected_option(&text("queue/scheduler").await?).to_owned(),
            // Negative or missing where the kernel cannot throttle.
            wbt_microseconds: text("queue/wbt_lat_usec").await?.parse().unwrap_or_default(),
            composite: !slaves.is_empty() || name.starts_with("loop"),
        })
    }

    pub(super) fn queue(&self, setting: &str) -> String {
        format!("/sys/block/{}/queue/{setting}", self.name)
    }
}

/// The name of a device from the source of a mount: `nvme0n1p2` of `/dev/nvme0n1p2`. The mapper's names are links.
async fn source_device(worker: &Worker, source: &str) -> Result<Option<String>, ContentionError> {
    let source = unescape(source);
    let Some(name) = source.strip_prefix("/dev/") else { return Ok(None) };
    let Some(mapped) = name.strip_prefix("mapper/") else { return Ok(Some(name.to_owned())) };
    for block in super::files::names(worker, "/sys/class/block").await? {
        if read(worker, &format!("/sys/class/block/{block}/dm/name")).await?.as_deref() == Some(mapped) {
            return Ok(Some(block));
        }
    }
    Ok(None)
}
