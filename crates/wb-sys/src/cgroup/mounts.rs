//! The mount points of the cgroup hierarchies and this process's own groups.

use std::path::{Path, PathBuf};

use crate::SysRoot;

use super::CgroupVersion;

/// A mounted cgroup hierarchy with this process's own folder in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) version: CgroupVersion,
    /// The controllers attached to a version 1 hierarchy; empty for version 2.
    pub(super) controllers: Vec<String>,
    pub(super) folder: PathBuf,
}

/// The mounted hierarchies of which this process is a member.
pub(super) fn hierarchies(root: &SysRoot) -> Vec<Hierarchy> {
    let mounts = root.text("/proc/self/mountinfo").unwrap_or_default();
    let own = root.text("/proc/self/cgroup").unwrap_or_default();
    let found = mounts.lines().filter_map(parse_mount).filter_map(|mount| own_folder(&mount, &own));
    found.filter_map(|hierarchy| Some(Hierarchy { folder: root.path(&hierarchy.folder).ok()?, ..hierarchy })).collect()
}

/// A cgroup file system in `mountinfo`.
struct Mount<'a> {
    version: CgroupVersion,
    /// The folder of the hierarchy that is mounted (the root of the mount).
    root: &'a str,
    point: &'a str,
    options: &'a str,
}

fn parse_mount(line: &str) -> Option<Mount<'_>> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    let (part, point) = (before.nth(3)?, before.next()?);
    let mut after = after.split(' ');
    let version = match after.next()? {
        "cgroup2" => CgroupVersion::V2,
        "cgroup" => CgroupVersion::V1,
        _ => return None,
    };
    Some(Mount { version, root: part, point, options: after.nth(1)? })
}

/// Finds the folder of this process below a mount, by a line `ID:CONTROLLERS:PATH` of `/proc/self/cgroup`.
fn own_folder(mount: &Mount, own: &str) -> Option<Hierarchy> {
    own.lines().find_map(|line| {
        let (id, rest) = line.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        let matches = match mount.version {
            CgroupVersion::V2 => id == "0" && names.is_empty(),
            CgroupVersion::V1 => {
                !names.is_empty() && names.split(',').all(|name| mount.options.split(',').any(|o| o == name))
            }
        };
        let relative = Path::new(path).strip_prefix(mount.root).ok()?;
        matches.then(|| Hierarchy {
            version: mount.version,
            controllers: names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            folder: Path::new(mount.point).join(relative),
        })
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn parse_hierarchies(mountinfo: &str, cgroup: &str) -> Vec<(CgroupVersion, Vec<String>, String)> {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("proc/self");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("mountinfo"), mountinfo).unwrap();
        fs::write(own.join("cgroup"), cgroup).unwrap();
        let display = |path: &Path| format!("/{}", path.strip_prefix(folder.path()).unwrap().display());
        hierarchies(&SysRoot::at(folder.path()))
            .into_iter()
            .map(|hierarchy| (hierarchy.version, hierarchy.controllers, display(&hierarchy.folder)))
            .collect()
    }

    #[test]
    fn a_unified_system_has_one_hierarchy() {
        let mounts = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n\
                      30 22 0:27 / /sys/fs/bpf rw - bpf bpf rw\n";
        assert_eq!(
            parse_hierarchies(mounts, "0::/user.slice/session-1.scope\n"),
            [(CgroupVersion::V2, vec![], "/sys/fs/cgroup/user.slice/session-1.scope".to_owned())]
        );
    }

    #[test]
    fn a_hybrid_system_has_both_versions_and_partial_mounts() {
        let mounts = "1 0 0:1 / /c/unified rw - cgroup2 cgroup2 rw\n\
                      2 0 0:2 /docker/x /c/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      3 0 0:3 / /c/freezer rw - cgroup cgroup rw,freezer\n";
        let own = "4:freezer:/\n3:cpu,cpuacct:/docker/x/y\n1:name=systemd:/a\n0::/a\n";
        assert_eq!(
            parse_hierarchies(mounts, own),
            [
                (CgroupVersion::V2, vec![], "/c/unified/a".to_owned()),
                (CgroupVersion::V1, vec!["cpu".to_owned(), "cpuacct".to_owned()], "/c/cpu,cpuacct/y".to_owned()),
                (CgroupVersion::V1, vec!["freezer".to_owned()], "/c/freezer".to_owned()),
            ]
        );
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(
            mount in "([0-9/a-z]{0,4} ){0,6}(- )?(cgroup2? )?([a-z,/.]{0,5} ?){0,4}",
            own in "([0-9]?:?[a-z,=]{0,6}:?[/.a-z]{0,6}\n?){0,3}",
        ) {
            if let Some(mount) = parse_mount(&mount) {
                own_folder(&mount, &own);
            }
        }
    }
}
