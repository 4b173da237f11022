//! Control groups: hold the processes of one attempt, to account for and kill them as a unit.
//!
//! Version 2 is used where it is mounted, alone or beside version 1; else version 1's `freezer` and
//! `cpuacct`; else none. Groups are created below this process's own group, so that its limits still apply.
//! No controller is enabled: a memory controller would slow down the measured process. What measures controllers enables
//! them for groups of its own: [`controllers`], and [`io_cost`] for the one of I/O.
//!
//! Start with [`Cgroups::find`] and [`Cgroups::create`]. [`memory`] reads the limits that apply to this process.

pub mod controllers;
pub mod io_cost;
pub mod memory;
mod mounts;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SysRoot;
use crate::process::Owner;

use mounts::{Hierarchy, hierarchies};

/// The version of the cgroup interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// Version 2, alone or beside version 1.
    V2,
    /// Version 1.
    V1,
}

/// The folders in which this process can create groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cgroups {
    v2: Option<PathBuf>,
    freezer: Option<PathBuf>,
    cpuacct: Option<PathBuf>,
}

/// A control group. Dropping it does not remove it: see [`Cgroup::remove`].
#[derive(Debug)]
pub struct Cgroup {
    kind: CgroupVersion,
    /// Its folders. The first one lists the members and is used to kill them.
    folders: Vec<PathBuf>,
    /// The folder with its CPU time, where it is accounted.
    cpu: Option<PathBuf>,
}

/// CPU time of the processes that ever ran in a group, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTimes {
    pub user_ns: u64,
    pub system_ns: u64,
}

impl Cgroups {
    /// Finds the hierarchies that this process can use, from its mounts and its own groups.
    pub fn find(root: &SysRoot) -> Self {
        let mut found = Self::default();
        for Hierarchy { version, controllers, folder } in hierarchies(root) {
            let has = |name: &str| controllers.iter().any(|controller| controller == name);
            match version {
                CgroupVersion::V2 => found.v2 = Some(folder),
                CgroupVersion::V1 if has("freezer") => found.freezer = Some(folder),
                CgroupVersion::V1 if has("cpuacct") => found.cpuacct = Some(folder),
                CgroupVersion::V1 => {}
            }
        }
        found
    }

    /// Creates a group of this name. None where that is not possible or not permitted.
    pub fn create(&self, name: &str) -> Option<Cgroup> {
        self.create_v2(name).or_else(|| self.create_v1(name))
    }

    fn create_v2(&self, name: &str) -> Option<Cgroup> {
        let folder = self.v2.as_ref()?.join(name);
        fs::create_dir(&folder).ok()?;
        let group = Cgroup { kind: CgroupVersion::V2, cpu: Some(folder.clone()), folders: vec![folder] };
        group.require_joinable()
    }

    fn create_v1(&self, name: &str) -> Option<Cgroup> {
        let make = |base: &Option<PathBuf>| {
            let folder = base.as_ref()?.join(name);
            fs::create_dir(&folder).ok().map(|()| folder)
        };
        let (freezer, cpuacct) = (make(&self.freezer), make(&self.cpuacct));
        let folders: Vec<PathBuf> = freezer.into_iter().chain(cpuacct.clone()).collect();
        (!folders.is_empty()).then_some(Cgroup { kind: CgroupVersion::V1, folders, cpu: cpuacct })?.require_joinable()
    }

    /// Kills and removes the groups whose owning processes no longer exist, and returns their names.
    pub fn remove_stale(&self, root: &SysRoot) -> Vec<String> {
        let bases =
            [(CgroupVersion::V2, &self.v2), (CgroupVersion::V1, &self.freezer), (CgroupVersion::V1, &self.cpuacct)];
        let mut removed = Vec::new();
        for (kind, base) in bases.into_iter().filter_map(|(kind, base)| Some((kind, base.as_ref()?))) {
            for name in folders_in(base).iter().filter_map(|folder| folder.file_name()?.to_str()) {
                if Owner::parse(name).is_some_and(|owner| owner.is_gone(root)) {
                    let group = Cgroup { kind, folders: vec![base.join(name)], cpu: None };
                    if group.kill_and_remove() {
                        removed.push(name.to_owned());
                    }
                }
            }
        }
        removed
    }
}

impl Cgroup {
    pub fn kind(&self) -> CgroupVersion {
        self.kind
    }

    /// The folder of the group; with version 1 the first of its folders.
    pub fn folder(&self) -> &Path {
        &self.folders[0]
    }

    /// Opens the files through which a process joins the group by writing `0`.
    pub fn join(&self) -> io::Result<Vec<File>> {
        self.folders.iter().map(|folder| File::options().write(true).open(folder.join("cgroup.procs"))).collect()
    }

    /// The processes of the group and its descendants, including zombies where the kernel lists them.
    pub fn members(&self) -> Vec<u32> {
        let mut members = Vec::new();
        let mut next = vec![self.folder().to_owned()];
        while let Some(folder) = next.pop() {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            members.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
            next.extend(folders_in(&folder));
        }
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Sends SIGKILL to every process of the group. Zombies may remain until they are reaped, and where the kernel has
    /// no `cgroup.kill` a process may have forked meanwhile: call again until [`Cgroup::members`] is empty.
    pub fn kill(&self) {
        if fs::write(self.folder().join("cgroup.kill"), "1").is_ok() {
            return;
        }
        // A frozen process cannot fork while the members are killed one by one; the signal takes effect on thawing.
        self.freeze(true);
        for pid in self.members() {
            if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        self.freeze(false);
    }

    /// Kills the members until the group can be removed, for about a second at most, because this process cannot
    /// reap them. Returns whether the group was removed.
    fn kill_and_remove(&self) -> bool {
        (0..1000).any(|_| {
            self.kill();
            self.remove().is_ok() || {
                thread::sleep(Duration::from_millis(1));
                false
            }
        })
    }

    /// Total CPU time of all processes that ever ran in the group, in nanoseconds; None where it is not accounted.
    pub fn cpu_ns(&self) -> Option<u64> {
        let file = match self.kind {
            CgroupVersion::V2 => "cpu.stat",
            CgroupVersion::V1 => "cpuacct.usage",
        };
        parse_cpu(self.kind, &self.cpu_file(file)?)
    }

    /// [`Cgroup::cpu_ns`], by mode; None also with version 1 on kernels before 4.8, which do not have it.
    pub fn cpu_times(&self) -> Option<CpuTimes> {
        match self.kind {
            CgroupVersion::V2 => {
                let text = self.cpu_file("cpu.stat")?;
                Some(CpuTimes {
                    user_ns: parse_stat(&text, "user_usec")?,
                    system_ns: parse_stat(&text, "system_usec")?,
                })
            }
            CgroupVersion::V1 => {
                let number = |file| self.cpu_file(file)?.trim().parse().ok();
                Some(CpuTimes { user_ns: number("cpuacct.usage_user")?, system_ns: number("cpuacct.usage_sys")? })
            }
        }
    }

    fn cpu_file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.cpu.as_ref()?.join(name)).ok()
    }

    /// A group inside it for some of its processes, which are members of both, removed with it. None where impossible.
    pub fn create_inside(&self, name: &str) -> Option<Self> {
        let folders: Vec<PathBuf> = self.folders.iter().map(|folder| folder.join(name)).collect();
        folders.iter().try_for_each(fs::create_dir).ok()?;
        Some(Self { kind: self.kind, folders, cpu: self.cpu.as_ref().map(|folder| folder.join(name)) })
    }

    /// Removes the group and its descendants. Fails while it has members.
    pub fn remove(&self) -> io::Result<()> {
        self.folders.iter().try_for_each(|folder| remove_tree(folder))
    }

    fn freeze(&self, frozen: bool) {
        let (file, text) = match (self.kind, frozen) {
            (CgroupVersion::V2, true) => ("cgroup.freeze", "1"),
            (CgroupVersion::V2, false) => ("cgroup.freeze", "0"),
            (CgroupVersion::V1, true) => ("freezer.state", "FROZEN"),
            (CgroupVersion::V1, false) => ("freezer.state", "THAWED"),
        };
        let _ = fs::write(self.folder().join(file), text);
    }

    /// Removes a group that can be created but not joined (no delegation).
    fn require_joinable(self) -> Option<Self> {
        if self.join().is_ok() {
            return Some(self);
        }
        let _ = self.remove();
        None
    }
}

/// Parses `cpu.stat` of version 2 (microseconds), or `cpuacct.usage` of version 1, into nanoseconds.
fn parse_cpu(kind: CgroupVersion, text: &str) -> Option<u64> {
    match kind {
        CgroupVersion::V1 => text.trim().parse().ok(),
        CgroupVersion::V2 => parse_stat(text, "usage_usec"),
    }
}

/// Parses a time of `cpu.stat` into nanoseconds.
fn parse_stat(text: &str, name: &str) -> Option<u64> {
    let micros = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    micros.trim().parse::<u64>().ok()?.checked_mul(1000)
}

fn remove_tree(folder: &Path) -> io::Result<()> {
    for child in folders_in(folder) {
        remove_tree(&child)?;
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|file_type| file_type.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    /// Kills a group of three processes, two of them in sessions of their own, and removes it.
    fn kill_and_remove_all(group: Cgroup) {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", "read go; setsid sleep 1000 & setsid sleep 1000 & wait"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        for folder in &group.folders {
            fs::write(folder.join("cgroup.procs"), shell.id().to_string()).unwrap();
        }
        shell.stdin.take().unwrap().write_all(b"\n").unwrap();
        while group.members().len() < 3 {
            std::thread::yield_now();
        }
        assert!(group.remove().is_err());
        while group.members().iter().any(|pid| *pid != shell.id()) || shell.try_wait().unwrap().is_none() {
            group.kill();
        }
        assert!(group.cpu_ns().unwrap() > 0);
        while group.remove().is_err() {
            std::thread::yield_now();
        }
        assert!(!group.folder().exists());
    }

    #[test]
    fn each_cgroup_version_kills_all_members() {
        let cgroups = Cgroups::find(&SysRoot::real());
        let name = |number| Owner::current(&SysRoot::real()).resource_name(number);
        for (created, version) in
            [(cgroups.create_v2(&name(1)), "version 2"), (cgroups.create_v1(&name(2)), "version 1")]
        {
            match created {
                Some(group) => kill_and_remove_all(group),
                None => wb_test_skip::skip!("cannot create a cgroup of {version}"),
            }
        }
    }

    #[test]
    fn only_groups_of_dead_owners_are_stale() {
        let root = SysRoot::real();
        let cgroups = Cgroups::find(&root);
        let own = Owner::current(&root).resource_name(3);
        let stale = own.replace(&format!("-{:08}-", std::process::id()), "-99999999-");
        let (Some(own), Some(stale)) = (cgroups.create(&own), cgroups.create(&stale)) else {
            wb_test_skip::skip!("cannot create a cgroup");
            return;
        };
        cgroups.remove_stale(&root);
        assert!(!stale.folder().exists());
        assert!(own.folder().exists());
        own.remove().unwrap();
    }

    #[test]
    fn without_cgroups_no_group_is_created() {
        let cgroups = Cgroups::find(&SysRoot::at("/nosuch"));
        assert_eq!(cgroups, Cgroups::default());
        assert!(cgroups.create("x").is_none());
        assert!(cgroups.remove_stale(&SysRoot::real()).is_empty());
    }

    #[test]
    fn cpu_time_of_both_versions_is_in_nanoseconds() {
        assert_eq!(parse_cpu(CgroupVersion::V2, "usage_usec 12\nuser_usec 7\n"), Some(12_000));
        assert_eq!(parse_cpu(CgroupVersion::V1, "12345\n"), Some(12345));
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(text in "(usage_usec )?[0-9]{0,25}\\PC{0,5}") {
            parse_cpu(CgroupVersion::V1, &text);
            parse_cpu(CgroupVersion::V2, &text);
            parse_stat(&text, "user_usec");
        }
    }
}
