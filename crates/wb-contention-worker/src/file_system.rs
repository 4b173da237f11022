//! The file systems that a bench depends on: the one with hashd's files, and the machine's root file system.

use wb_agent::{Worker, WorkerError};
use wb_sys::proc::mountinfo::{MountInfo, mount_of};
use wb_sys::proc::unescape;

use super::files::{names, read_or_empty};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FileSystemFindings {
    /// On other file systems than btrfs, the writes of a slow group can hold a transaction that others wait for.
    pub(super) not_btrfs: Vec<String>,
    /// Btrfs that trims blocks while others wait, or keeps free space in the old form.
    pub(super) synchronous: Vec<String>,
    /// Btrfs with several devices.
    pub(super) several_devices: Vec<String>,
}

pub(super) async fn check(
    worker: &Worker,
    folder: &str,
    is_rotational: bool,
) -> Result<FileSystemFindings, WorkerError> {
    let text = read_or_empty(worker, "/proc/self/mountinfo").await?;
    let mut findings = FileSystemFindings::default();
    let mounts = [folder, "/"].map(|path| mount_of(&text, path));
    let [of_folder, root] = mounts;
    findings.add(folder, of_folder, is_rotational);
    if root.map(|mount| mount.device) != of_folder.map(|mount| mount.device) {
        findings.add("/", root, is_rotational);
    }
    for name in names(worker, "/sys/fs/btrfs").await? {
        let devices = names(worker, &format!("/sys/fs/btrfs/{name}/devices")).await?;
        let source = of_folder.map(|mount| unescape(mount.source)).unwrap_or_default();
        if devices.len() > 1 && devices.iter().any(|device| source.strip_prefix("/dev/") == Some(device)) {
            findings.several_devices.push(format!("the file system of {folder} is on {}", devices.join(", ")));
        }
    }
    Ok(findings)
}

impl FileSystemFindings {
    fn add(&mut self, path: &str, mount: Option<MountInfo<'_>>, is_rotational: bool) {
        let Some(mount) = mount.filter(|mount| mount.kind == "btrfs") else {
            let kind = mount.map_or("no mounted file system", |mount| mount.kind);
            self.not_btrfs.push(format!("{path} is on {kind}, not on btrfs"));
            return;
        };
        let has = |option: &str| mount.super_options.split(',').any(|one| one == option);
        let mut missing = Vec::new();
        missing.extend((!has("space_cache=v2") && !has("free-space-tree")).then_some("space_cache=v2"));
        missing.extend((!is_rotational && !has("discard=async")).then_some("discard=async"));
        if !missing.is_empty() {
            let (options, point) = (missing.join(","), unescape(mount.point));
            self.synchronous
                .push(format!("{path} is mounted without {options}: `mount -o remount,{options} {point}` sets it"));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    fn findings(kind: &str, options: &str, is_rotational: bool) -> FileSystemFindings {
        let text = format!("30 1 0:31 / / rw - {kind} /dev/sda2 {options}\n");
        let mut findings = FileSystemFindings::default();
        findings.add("/d", mount_of(&text, "/d"), is_rotational);
        findings
    }

    #[test]
    fn btrfs_is_mounted_with_asynchronous_discard_except_on_rotating_disks() {
        let good = FileSystemFindings::default();
        assert_eq!(findings("btrfs", "rw,ssd,discard=async,space_cache=v2", false), good);
        assert_eq!(findings("btrfs", "rw,space_cache=v2", true), good);
        let other = findings("ext4", "rw,discard", false);
        assert_eq!(other.not_btrfs, ["/d is on ext4, not on btrfs"]);
        for (options, missing) in [
            ("rw,space_cache=v2", "discard=async"),
            ("rw,discard,space_cache=v2", "discard=async"),
            ("rw,discard=async,space_cache", "space_cache=v2"),
            ("rw", "space_cache=v2,discard=async"),
        ] {
            let expected = format!("/d is mounted without {missing}: `mount -o remount,{missing} /` sets it");
            assert_eq!(findings("btrfs", options, false).synchronous, [expected], "{options}");
        }
    }
}
