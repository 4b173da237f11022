//! Whether a block device is in use: mounted, swapped to, or held by another device.

use wb_agent::{EntryKind, Process, Stream, WorkerError};
use wb_model::Nanos;

use crate::attempt::worker_failure;
use crate::{Failure, WorkerContext};

/// A block device, or a partition of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeviceNode {
    /// The kernel's name: `sda1`.
    pub name: String,
    /// Its number: `8:1`.
    pub number: String,
    /// The devices that hold it: of LVM, RAID, or encryption.
    pub holders: Vec<String>,
}

/// A block device as the worker has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TargetDevice {
    /// Itself, and its partitions.
    pub nodes: Vec<DeviceNode>,
    /// Its size in bytes.
    pub size: u64,
    /// Whether it cannot be written to.
    pub read_only: bool,
}

impl TargetDevice {
    /// What is known of the device of this number.
    pub(super) async fn read(site: &WorkerContext, number: &str) -> Result<Self, Failure> {
        let link = format!("/sys/dev/block/{number}");
        let folder = site.run(wb_agent::Command::new(["readlink", "-f", &link])).await?;
        let folder = String::from_utf8_lossy(&folder).trim().to_owned();
        let name = folder.rsplit('/').next().unwrap_or_default().to_owned();
        let mut nodes = vec![read_node(site, &folder, &name).await?];
        for entry in site.worker().list(&folder).await.map_err(worker_failure)? {
            // Partitions are folders that are named after their disk.
            if entry.kind == EntryKind::Folder && entry.name.starts_with(&name) {
                nodes.push(read_node(site, &format!("{folder}/{}", entry.name), &entry.name).await?);
            }
        }
        let sectors: u64 = read_line(site, &format!("{folder}/size")).await?.parse().unwrap_or_default();
        let read_only = read_line(site, &format!("{folder}/ro")).await? == "1";
        Ok(Self { nodes, size: sectors * 512, read_only })
    }

    /// By what it is in use, going by the worker's mounts (`/proc/self/mountinfo`) and swaps (`/proc/swaps`).
    pub(super) fn find_use(&self, mounts: &str, swaps: &str) -> Option<String> {
        self.nodes.iter().find_map(|node| {
            let name = &node.name;
            let mounted = mounts.lines().find_map(|line| mount_point(line, node));
            let mounted = mounted.map(|at| format!("{name} is mounted at {at}"));
            let swapped = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
            let swapped = swapped.into_iter().any(|path| path.strip_prefix("/dev/") == Some(name));
            let held = (!node.holders.is_empty()).then(|| format!("{name} is held by {}", node.holders.join(", ")));
            mounted.or_else(|| swapped.then(|| format!("{name} is swap"))).or(held)
        })
    }
}

async fn read_node(site: &WorkerContext, folder: &str, name: &str) -> Result<DeviceNode, Failure> {
    let holders = match site.worker().list(&format!("{folder}/holders")).await {
        Ok(entries) => entries.into_iter().map(|entry| entry.name).collect(),
        Err(WorkerError::Fault { .. }) => Vec::new(),
        Err(error) => return Err(worker_failure(error)),
    };
    Ok(DeviceNode { name: name.to_owned(), number: read_line(site, &format!("{folder}/dev")).await?, holders })
}

async fn read_line(site: &WorkerContext, path: &str) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&site.get(path).await?).trim().to_owned())
}

/// Where a line of mountinfo says that it is mounted.
fn mount_point(line: &str, node: &DeviceNode) -> Option<String> {
    let mut fields = line.split(' ');
    let (number, at) = (fields.nth(2)?, fields.nth(1)?);
    let source = line.split(" - ").nth(1)?.split(' ').nth(1)?;
    (number == node.number || source.strip_prefix("/dev/") == Some(&node.name)).then(|| at.to_owned())
}

/// Opens a device exclusively and keeps it open, so that nothing else begins to use it; its group ends it.
/// Whatever uses it already keeps it from being opened. None where the worker has no perl.
pub(super) async fn open_exclusively(site: &WorkerContext, path: &str) -> Result<Option<Process>, Failure> {
    const PROGRAM: &str = "use Fcntl; sysopen(my $device, $ARGV[0], O_RDWR | O_EXCL) or die \"$!\\n\"; \
                           $| = 1; print \"held\\n\"; sleep 1e9 while 1";
    if site.worker().which("perl", &[]).await.map_err(worker_failure)?.is_none() {
        return Ok(None);
    }
    let holder = site.start(wb_agent::Command::new(["perl", "-e", PROGRAM, path])).await?;
    let held = holder.wait_for_line(Stream::Stdout, Nanos(10_000_000_000), |line| line == "held");
    if site.until_cancelled(held).await?.map_err(worker_failure)?.is_some() {
        return Ok(Some(holder));
    }
    let why = holder.read_output(Stream::Stderr).await.map_err(worker_failure)?;
    let why = String::from_utf8_lossy(&why).trim().to_owned();
    Err(Failure::refused(format!("`{path}` cannot be opened for this test alone ({why}): something uses it")))
}

/// Ends a holder.
pub(super) async fn release(holder: Process) -> Result<(), Failure> {
    const SIGKILL: i32 = 9;
    holder.signal(SIGKILL).await.map_err(worker_failure)?;
    holder.wait(None).await.map_err(worker_failure)?;
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
    fn a_device_in_use_says_by_what() {
        let used = |nodes: &[(&str, &str, &[&str])]| device(nodes).find_use(MOUNTS, SWAPS);
        assert_eq!(used(&[("vda", "254:0", &[])]), None);
        assert_eq!(used(&[("vda1", "254:1", &[])]).unwrap(), "vda1 is mounted at /");
        assert_eq!(used(&[("vda", "254:0", &[]), ("vda1", "254:1", &[])]).unwrap(), "vda1 is mounted at /");
        assert_eq!(used(&[("sdb", "8:16", &[]), ("sdb2", "8:18", &[])]).unwrap(), "sdb2 is mounted at /data");
        assert_eq!(used(&[("sdc", "8:32", &[]), ("sdc1", "8:33", &[])]).unwrap(), "sdc1 is swap");
        assert_eq!(used(&[("sdd", "8:48", &["dm-0", "md1"])]).unwrap(), "sdd is held by dm-0, md1");
    }

    #[test]
    fn names_that_only_start_alike_are_not_mixed_up() {
        assert_eq!(device(&[("sdb", "8:16", &[])]).find_use(MOUNTS, SWAPS), None);
        assert_eq!(device(&[("sdc", "8:32", &[])]).find_use("", ""), None);
    }
}
