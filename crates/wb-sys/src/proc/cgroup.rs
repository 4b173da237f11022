//! `/proc/PID/cgroup` (cgroups(7)).

/// The group of a process in one hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CgroupMembership<'a> {
    /// The controllers of a version 1 hierarchy, separated by commas; empty for version 2.
    pub controllers: &'a str,
    /// The path of the group, from the root of the hierarchy as this process sees it.
    pub path: &'a str,
}

impl<'a> CgroupMembership<'a> {
    pub fn is_unified(&self) -> bool {
        self.controllers.is_empty()
    }

    /// Whether the hierarchy, of version 1, has a controller.
    pub fn has_controller(&self, name: &str) -> bool {
        self.controllers.split(',').any(|controller| controller == name)
    }

    /// The paths of the group and of its ancestors; the root is the empty path.
    pub fn ancestors(self) -> impl Iterator<Item = &'a str> {
        let path = self.path.trim_end_matches('/');
        [path].into_iter().chain(path.rmatch_indices('/').map(|(end, _)| &path[..end]))
    }
}

pub fn memberships(text: &str) -> impl Iterator<Item = CgroupMembership<'_>> {
    text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some(CgroupMembership { controllers: parts.next()?, path: parts.next()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_each_hierarchy_is_found() {
        let text = "4:cpu,cpuacct:/a/b\n1:name=systemd:/\nnonsense\n0::/c:d\n";
        let groups: Vec<CgroupMembership> = memberships(text).collect();
        assert_eq!(groups.len(), 3);
        assert!(groups[0].has_controller("cpuacct") && !groups[0].has_controller("memory"));
        assert!(groups[0].ancestors().eq(["/a/b", "/a", ""]));
        assert!(groups[1].ancestors().eq([""]));
        assert!(groups[2].is_unified() && groups[2].path == "/c:d");
    }
}
