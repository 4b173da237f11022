//! Where the cgroup hierarchies are mounted, and where in them this process is.

use std::path::{Path, PathBuf};

use crate::SysRoot;

use super::CgroupVersion;

/// One hierarchy, and this process's own folder in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) version: CgroupVersion,
    /// What version 1 has on it; empty for version 2.
    pub(super) controllers: Vec<String>,
    pub(super) folder: PathBuf,
}

/// Every hierarchy that is mounted and that this process is in.
pub(super) fn hierarchies(root: &SysRoot) -> Vec<Hierarchy> {
    let mounts = root.text("/proc/self/mountinfo").unwrap_or_default();
    let own = root.text("/proc/self/cgroup").unwrap_or_default();
    let found = mounts.lines().filter_map(parse_mount).filter_map(|mount| locate(&mount, &own));
    found.filter_map(|hierarchy| Some(Hierarchy { folder: root.path(&hierarchy.folder).ok()?, ..hierarchy })).collect()
}

/// A line of `mountinfo` about a cgroup filesystem.
struct Mount<'a> {
    version: CgroupVersion,
    /// Which folder of the hierarchy is mounted.
    part: &'a str,
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
    Some(Mount { version, part, point, options: after.nth(1)? })
}

/// The folder of this process below the mount, by its line `ID:CONTROLLERS:PATH` of `/proc/self/cgroup`.
fn locate(mount: &Mount, own: &str) -> Option<Hierarchy> {
    own.lines().find_map(|line| {
        let (id, rest) = line.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        let fits = match mount.version {
            CgroupVersion::V2 => id == "0" && names.is_empty(),
            CgroupVersion::V1 => {
                !names.is_empty() && names.split(',').all(|name| mount.options.split(',').any(|o| o == name))
            }
        };
        let below = Path::new(path).strip_prefix(mount.part).ok()?;
        fits.then(|| Hierarchy {
            version: mount.version,
            controllers: names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            folder: Path::new(mount.point).join(below),
        })
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn found(mountinfo: &str, cgroup: &str) -> Vec<(CgroupVersion, Vec<String>, String)> {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("proc/self");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("mountinfo"), mountinfo).unwrap();
        fs::write(own.join("cgroup"), cgroup).unwrap();
        let shown = |path: &Path| format!("/{}", path.strip_prefix(folder.path()).unwrap().display());
        hierarchies(&SysRoot::at(folder.path()))
            .into_iter()
            .map(|hierarchy| (hierarchy.version, hierarchy.controllers, shown(&hierarchy.folder)))
            .collect()
    }

    #[test]
    fn a_unified_system_has_one() {
        let mounts = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n\
                      30 22 0:27 / /sys/fs/bpf rw - bpf bpf rw\n";
        assert_eq!(
            found(mounts, "0::/user.slice/session-1.scope\n"),
            [(CgroupVersion::V2, vec![], "/sys/fs/cgroup/user.slice/session-1.scope".to_owned())]
        );
    }

    #[test]
    fn a_hybrid_system_has_both_and_mounted_parts_are_understood() {
        let mounts = "1 0 0:1 / /c/unified rw - cgroup2 cgroup2 rw\n\
                      2 0 0:2 /docker/x /c/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      3 0 0:3 / /c/freezer rw - cgroup cgroup rw,freezer\n";
        let own = "4:freezer:/\n3:cpu,cpuacct:/docker/x/y\n1:name=systemd:/a\n0::/a\n";
        assert_eq!(
            found(mounts, own),
            [
                (CgroupVersion::V2, vec![], "/c/unified/a".to_owned()),
                (CgroupVersion::V1, vec!["cpu".to_owned(), "cpuacct".to_owned()], "/c/cpu,cpuacct/y".to_owned()),
                (CgroupVersion::V1, vec!["freezer".to_owned()], "/c/freezer".to_owned()),
            ]
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(
            mount in "([0-9/a-z]{0,4} ){0,6}(- )?(cgroup2? )?([a-z,/.]{0,5} ?){0,4}",
            own in "([0-9]?:?[a-z,=]{0,6}:?[/.a-z]{0,6}\n?){0,3}",
        ) {
            if let Some(mount) = parse_mount(&mount) {
                locate(&mount, &own);
            }
        }
    }
}
