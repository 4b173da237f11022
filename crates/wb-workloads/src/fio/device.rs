//! Detection of block devices in use: mounted, used as swap, or held by another device.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use wb_agent::signal::SIGKILL;
use wb_agent::{EntryKind, OutputStream, Process, WorkerError};
use wb_model::Nanos;
use wb_sys::proc::mountinfo::{self, MountInfo};
use wb_sys::proc::swaps;
use wb_test::{Failure, WorkerContext};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeviceNode {
    /// `sda1`.
    pub name: String,
    /// `8:1`.
    pub number: String,
    /// Devices that hold it, such as LVM, RAID or encryption.
    pub holders: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TargetDevice {
    /// The device itself, and its partitions.
    pub nodes: Vec<DeviceNode>,
    /// In bytes.
    pub size: u64,
    pub read_only: bool,
}

impl TargetDevice {
    pub(super) async fn read(context: &WorkerContext, number: &str) -> Result<Self, Failure> {
        let link = format!("/sys/dev/block/{number}");
        let folder = context.run(wb_agent::Command::new(["readlink", "-f", &link])).await?;
        let folder = String::from_utf8_lossy(&folder).trim().to_owned();
        let name = folder.rsplit('/').next().unwrap_or_default().to_owned();
        let mut nodes = vec![read_node(context, &folder, &name).await?];
        for entry in context.worker().list(&folder).await? {
            // Partitions are folders whose names start with that of their disk.
            if entry.kind == EntryKind::Folder && entry.name.starts_with(&name) {
                nodes.push(read_node(context, &format!("{folder}/{}", entry.name), &entry.name).await?);
            }
        }
        let sectors: u64 = read_line(context, &format!("{folder}/size")).await?.parse().unwrap_or_default();
        let read_only = read_line(context, &format!("{folder}/ro")).await? == "1";
        Ok(Self { nodes, size: sectors * 512, read_only })
    }

    /// How the device is in use, according to the worker's `/proc/self/mountinfo` and `/proc/swaps`.
    pub(super) fn find_use(&self, mounts: &str, swaps: &str) -> Option<String> {
        self.nodes.iter().find_map(|node| {
            let name = &node.name;
            let mounted = mountinfo::mounts(mounts).find(|mount| node.is_source_of(mount));
            let mounted = mounted.map(|mount| format!("{name} is mounted at {}", mount.point));
            let swapped = swaps::areas(swaps).flatten().any(|area| area.name.strip_prefix("/dev/") == Some(name));
            let holders = (!node.holders.is_empty()).then(|| format!("{name} is held by {}", node.holders.join(", ")));
            mounted.or_else(|| swapped.then(|| format!("{name} is swap"))).or(holders)
        })
    }
}

impl DeviceNode {
    fn is_source_of(&self, mount: &MountInfo) -> bool {
        mount.device == self.number || mount.source.strip_prefix("/dev/") == Some(&self.name)
    }
}

async fn read_node(context: &WorkerContext, folder: &str, name: &str) -> Result<DeviceNode, Failure> {
    let holders = match context.worker().list(&format!("{folder}/holders")).await {
        Ok(entries) => entries.into_iter().map(|entry| entry.name).collect(),
        Err(WorkerError::Fault { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    Ok(DeviceNode { name: name.to_owned(), number: read_line(context, &format!("{folder}/dev")).await?, holders })
}

async fn read_line(context: &WorkerContext, path: &str) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&context.get(path).await?).trim().to_owned())
}

/// Opens a device exclusively in a process that runs until its group ends, so that nothing else can start to use it.
/// Fails if the device is in use.
pub(super) async fn open_exclusively(context: &WorkerContext, path: &str) -> Result<Process, Failure> {
    let holder =
        context.start(wb_agent::Command::new([context.worker().program(), "exec", "hold-device", path])).await?;
    let opened = holder.wait_for_line(OutputStream::Stdout, Nanos(10_000_000_000), |line| line == HELD);
    if context.until_cancelled(opened).await??.is_some() {
        return Ok(holder);
    }
    let reason = holder.read_output(OutputStream::Stderr).await?;
    let reason = String::from_utf8_lossy(&reason).trim().to_owned();
    Err(Failure::refused(reason))
}

/// What the process that holds a device prints once it does.
const HELD: &str = "held";

/// Opens a block device exclusively, as the kernel does for what is mounted, until the process is killed. Fails if the
/// device is in use, or cannot be written.
pub fn hold(path: &str) -> io::Result<Infallible> {
    let opened = File::options().read(true).write(true).custom_flags(OFlags::EXCL.bits() as i32).open(path);
    let _held =
        opened.map_err(|error| io::Error::new(error.kind(), format!("cannot open `{path}` exclusively: {error}")))?;
    writeln!(io::stdout(), "{HELD}")?;
    loop {
        std::thread::park();
    }
}

pub(super) async fn release(holder: Process) -> Result<(), Failure> {
    holder.signal(SIGKILL).await?;
    holder.wait(None).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
                          23 22 0:21 / /proc rw - proc proc rw\n\
                          30 22 0:40 / /data rw shared:9 - btrfs /dev/sdb2 rw\n\
                          nonsense\n";
    const SWAPS: &str = "Filename\tType\tSize\tUsed\tPriority\n/dev/sdc1   partition\t1\t0\t-2\n";

    fn device(nodes: &[(&str, &str, &[&str])]) -> TargetDevice {
        let node = |(name, number, holders): &(&str, &str, &[&str])| DeviceNode {
            name: (*name).to_owned(),
            number: (*number).to_owned(),
            holders: holders.iter().map(|holder| (*holder).to_owned()).collect(),
        };
        TargetDevice { nodes: nodes.iter().map(node).collect(), size: 1 << 30, read_only: false }
    }

    #[test]
    fn the_use_of_a_device_is_described() {
        let find_use = |nodes: &[(&str, &str, &[&str])]| device(nodes).find_use(MOUNTS, SWAPS);
        assert_eq!(find_use(&[("vda", "254:0", &[])]), None);
        assert_eq!(find_use(&[("vda1", "254:1", &[])]).unwrap(), "vda1 is mounted at /");
        assert_eq!(find_use(&[("vda", "254:0", &[]), ("vda1", "254:1", &[])]).unwrap(), "vda1 is mounted at /");
        assert_eq!(find_use(&[("sdb", "8:16", &[]), ("sdb2", "8:18", &[])]).unwrap(), "sdb2 is mounted at /data");
        assert_eq!(find_use(&[("sdc", "8:32", &[]), ("sdc1", "8:33", &[])]).unwrap(), "sdc1 is swap");
        assert_eq!(find_use(&[("sdd", "8:48", &["dm-0", "md1"])]).unwrap(), "sdd is held by dm-0, md1");
    }

    #[test]
    fn names_with_a_common_prefix_are_distinguished() {
        assert_eq!(device(&[("sdb", "8:16", &[])]).find_use(MOUNTS, SWAPS), None);
        assert_eq!(device(&[("sdc", "8:32", &[])]).find_use("", ""), None);
    }
}
