//! `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).

/// A mounted file system. Texts are as the kernel writes them: see [`unescape`](super::unescape).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountInfo<'a> {
    /// The number of its device: `254:1`.
    pub device: &'a str,
    /// The folder of the file system that is mounted.
    pub root: &'a str,
    pub point: &'a str,
    pub options: &'a str,
    /// The type of the file system.
    pub kind: &'a str,
    /// The source: a device, an address or a name.
    pub source: &'a str,
    /// The options of the file system; empty where there are none.
    pub super_options: &'a str,
}

/// The mounts, a later one above an earlier one at the same point.
pub fn mounts(text: &str) -> impl Iterator<Item = MountInfo<'_>> {
    text.lines().filter_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let mut file_system = file_system.split(' ');
        Some(MountInfo {
            device: mount.next()?,
            root: mount.next()?,
            point: mount.next()?,
            options: mount.next()?,
            kind: file_system.next()?,
            source: file_system.next()?,
            super_options: file_system.next().unwrap_or_default(),
        })
    })
}

/// The mount with the longest mount point that is a prefix of the path; the last of several.
pub fn mount_of<'a>(text: &'a str, path: &str) -> Option<MountInfo<'a>> {
    let contains = |point: &str| {
        let rest = path.strip_prefix(point.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let found = mounts(text).map(|mount| (super::unescape(mount.point), mount));
    found.filter(|(point, _)| contains(point)).max_by_key(|(point, _)| point.len()).map(|(_, mount)| mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_on_the_last_of_the_innermost_mounts() {
        const MOUNTS: &str = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
            23 22 0:21 / /proc rw - proc proc rw\n\
            30 22 259:0 / /mnt rw - ext4 /dev/nvme0n1 rw\n\
            31 30 259:5 / /mnt rw - xfs /dev/nvme1n1 rw\n";
        let device = |path| mount_of(MOUNTS, path).unwrap().device;
        assert_eq!(device("/mnt/scratch"), "259:5");
        assert_eq!(device("/mnt"), "259:5");
        assert_eq!(device("/mnt2"), "254:0");
        assert_eq!(device("/"), "254:0");
    }

    #[test]
    fn fields_are_found_whatever_the_number_of_optional_ones() {
        let text = "27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard\n\
                    nonsense\n\
                    31 27 0:40 /part /mnt/a\\040b ro - cifs //host/x\n";
        let found: Vec<MountInfo> = mounts(text).collect();
        let expected = MountInfo {
            device: "254:0",
            root: "/",
            point: "/",
            options: "rw,relatime",
            kind: "ext4",
            source: "/dev/vda",
            super_options: "rw,discard",
        };
        assert_eq!(found[0], expected);
        assert_eq!((found[1].root, found[1].point, found[1].super_options), ("/part", "/mnt/a\\040b", ""));
        assert_eq!(found.len(), 2);
    }
}
