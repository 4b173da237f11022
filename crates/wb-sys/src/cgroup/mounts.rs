//! The mount points of the cgroup hierarchies and this process's own groups.

use std::path::{Path, PathBuf};

use crate::SysRoot;
use crate::proc::cgroup::{CgroupMembership, memberships};
use crate::proc::mountinfo::{MountInfo, mounts};

use super::CgroupVersion;

/// A mounted cgroup hierarchy with this process's own folder in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) version: CgroupVersion,
    /// The controllers attached to a version 1 hierarchy; empty for version 2.
    pub(super) controllers: Vec<String>,
    pub(super) folder: PathBuf,
}

pub(super) fn hierarchies(root: &SysRoot) -> Vec<Hierarchy> {
    let mountinfo = root.text("/proc/self/mountinfo").unwrap_or_default();
    let own = root.text("/proc/self/cgroup").unwrap_or_default();
    let found = mounts(&mountinfo).filter_map(|mount| memberships(&own).find_map(|group| hierarchy(&mount, &group)));
    found.filter_map(|hierarchy| Some(Hierarchy { folder: root.path(&hierarchy.folder).ok()?, ..hierarchy })).collect()
}

/// The hierarchy of a mount, if `own` is this process's group in it.
fn hierarchy(mount: &MountInfo, own: &CgroupMembership) -> Option<Hierarchy> {
    let is_attached = |name: &str| mount.super_options.split(',').any(|option| option == name);
    let version = match mount.kind {
        "cgroup2" if own.is_unified() => CgroupVersion::V2,
        "cgroup" if !own.is_unified() && own.controllers.split(',').all(is_attached) => CgroupVersion::V1,
        _ => return None,
    };
    let relative = Path::new(own.path).strip_prefix(mount.root).ok()?;
    Some(Hierarchy {
        version,
        controllers: own.controllers.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        folder: Path::new(mount.point).join(relative),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fake_root::FakeRoot;

    fn parse_hierarchies(mountinfo: &str, cgroup: &str) -> Vec<(CgroupVersion, Vec<String>, String)> {
        let fake = FakeRoot::new().file("/proc/self/mountinfo", mountinfo).file("/proc/self/cgroup", cgroup);
        let base = fake.root().path("/").unwrap();
        let display = |path: &Path| format!("/{}", path.strip_prefix(&base).unwrap().display());
        hierarchies(&fake.root())
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
            mountinfo in "([0-9/a-z]{0,4} ){0,6}(- )?(cgroup2? )?([a-z,/.]{0,5} ?){0,4}",
            own in "([0-9]?:?[a-z,=]{0,6}:?[/.a-z]{0,6}\n?){0,3}",
        ) {
            for (mount, own) in mounts(&mountinfo).zip(memberships(&own)) {
                hierarchy(&mount, &own);
            }
        }
    }
}
