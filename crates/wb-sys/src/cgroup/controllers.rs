//! Controllers of cgroup v2, and groups with settings.

use crate::SysRoot;
use crate::proc::mountinfo::{MountInfo, mounts};
use crate::undo::ManagedResource;

/// The mount of cgroup v2 that has controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerMount {
    pub point: String,
    /// Its controllers, in the kernel's order.
    pub controllers: Vec<String>,
    /// Whether the memory protection of a group extends to its descendants (mount option `memory_recursiveprot`).
    pub is_protection_recursive: bool,
}

impl ControllerMount {
    /// Finds the mount among `/proc/self/mountinfo`; `read` returns the contents of a file, if it exists. None if cgroup
    /// v2 is not mounted, or has no controllers.
    pub fn find(mountinfo: &str, mut read: impl FnMut(&str) -> Option<String>) -> Option<Self> {
        let mut candidates = mounts(mountinfo).filter(|mount| mount.kind == "cgroup2");
        candidates.find_map(|MountInfo { point, super_options, .. }| {
            let text = read(&format!("{point}/cgroup.controllers"))?;
            let controllers: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            let has = |option| super_options.split(',').any(|one| one == option);
            let is_protection_recursive = has("memory_recursiveprot");
            (!controllers.is_empty()).then(|| Self { point: point.to_owned(), controllers, is_protection_recursive })
        })
    }

    pub fn detect(root: &SysRoot) -> Option<Self> {
        let mountinfo = root.text("/proc/self/mountinfo").ok()?;
        Self::find(&mountinfo, |path| root.text(path).ok())
    }

    pub fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|name| name == controller)
    }
}

/// A resource whose state is whether the children of a group have a controller: [`ON`] or `off`.
pub fn controller_resource(group: &str, controller: &str) -> ManagedResource {
    let control = format!("{group}/cgroup.subtree_control");
    let words = |script: &str, arguments: [&str; 3]| {
        ["sh", "-c", script, "sh"].into_iter().chain(arguments).map(str::to_owned).collect()
    };
    ManagedResource::Command {
        name: format!("{controller} in {control}"),
        read: words("grep -qw \"$1\" \"$2\" && echo on || echo off", [controller, &control, ""]),
        write: words("case $1 in on) echo \"+$2\";; *) echo \"-$2\";; esac > \"$3\"", ["{}", controller, &control]),
    }
}

/// State of [`controller_resource`] in which the controller is enabled.
pub const ON: &str = "on\n";

/// A resource that creates a group with settings, and its state.
pub fn group_resource(path: impl Into<String>, settings: &[(&str, String)]) -> (ManagedResource, String) {
    let state = settings.iter().map(|(_, value)| format!("{value}\n")).collect();
    let files = settings.iter().map(|(file, _)| (*file).to_owned()).collect();
    (ManagedResource::Group { path: path.into(), files }, state)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "24 1 0:22 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n\
        25 24 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n\
        26 24 0:24 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    #[test]
    fn a_mount_without_controllers_is_not_one_that_has_them() {
        let legacy = ControllerMount::find(MOUNTS, |_| Some(String::new()));
        assert_eq!(legacy, None);
        let modern = MOUNTS.replace("nsdelegate", "nsdelegate,memory_recursiveprot");
        let mount = ControllerMount::find(&modern, |path| {
            assert_eq!(path, "/sys/fs/cgroup/unified/cgroup.controllers");
            Some("cpu io memory\n".to_owned())
        });
        let mount = mount.unwrap();
        assert!(mount.is_protection_recursive && mount.has("io") && !mount.has("cpuset"));
        assert_eq!(ControllerMount::find(MOUNTS, |_| None), None);
    }
}
