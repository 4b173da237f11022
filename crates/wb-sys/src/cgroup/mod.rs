//! Control groups: what belongs to one attempt, counted and ended as one, whichever kind the system has.
//!
//! Version 2 is used where it is mounted, alone or beside version 1; else version 1's `freezer` and
//! `cpuacct`; else none. Groups are made under this process's own, so that limits set on it keep
//! holding, and no controller is switched on: a memory controller would cost the measured process time.
//!
//! Start with [`Cgroups::find`] and [`Cgroups::make`].

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

/// The kinds of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// Version 2, also beside version 1.
    V2,
    /// Version 1.
    V1,
}

/// Where groups can be made on this system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cgroups {
    v2: Option<PathBuf>,
    freezer: Option<PathBuf>,
    cpuacct: Option<PathBuf>,
}

/// One group. It is not removed when dropped: see [`Cgroup::remove`].
#[derive(Debug)]
pub struct Cgroup {
    kind: CgroupVersion,
    /// Its folders, the one that lists and ends its members first.
    folders: Vec<PathBuf>,
    cpu: Option<PathBuf>,
}

impl Cgroups {
    /// What this process could use, as its mounts and its own groups say.
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

    /// Makes a group of this name. None where that is not possible or not allowed.
    pub fn create(&self, name: &str) -> Option<Cgroup> {
        self.create_v2(name).or_else(|| self.create_v1(name))
    }

    fn create_v2(&self, name: &str) -> Option<Cgroup> {
        let folder = self.v2.as_ref()?.join(name);
        fs::create_dir(&folder).ok()?;
        let group = Cgroup { kind: CgroupVersion::V2, cpu: Some(folder.join("cpu.stat")), folders: vec![folder] };
        group.require_joinable()
    }

    fn create_v1(&self, name: &str) -> Option<Cgroup> {
        let make = |base: &Option<PathBuf>| {
            let folder = base.as_ref()?.join(name);
            fs::create_dir(&folder).ok().map(|()| folder)
        };
        let (freezer, cpuacct) = (make(&self.freezer), make(&self.cpuacct));
        let cpu = cpuacct.as_ref().map(|folder| folder.join("cpuacct.usage"));
        let folders: Vec<PathBuf> = freezer.into_iter().chain(cpuacct).collect();
        (!folders.is_empty()).then_some(Cgroup { kind: CgroupVersion::V1, folders, cpu })?.require_joinable()
    }

    /// Ends and removes the groups whose owners are gone; their names.
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
    /// Its kind.
    pub fn kind(&self) -> CgroupVersion {
        self.kind
    }

    /// Its folder; of version 1 the first of its folders.
    pub fn folder(&self) -> &Path {
        &self.folders[0]
    }

    /// The files through which a process joins it, by writing `0`.
    pub fn join(&self) -> io::Result<Vec<File>> {
        self.folders.iter().map(|folder| File::options().write(true).open(folder.join("cgroup.procs"))).collect()
    }

    /// The processes in it and in groups below it, those that have ended and wait to be reaped included
    /// where the kernel lists them.
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

    /// Ends every process in it. They may still have to be reaped, and one may have been born
    /// meanwhile where the kernel cannot do it at once: call again until [`Cgroup::members`] is empty.
    pub fn kill(&self) {
        if fs::write(self.folder().join("cgroup.kill"), "1").is_ok() {
            return;
        }
        // Frozen, none can fork while they are ended one by one; the signal takes effect on thawing.
        self.freeze(true);
        for pid in self.members() {
            if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        self.freeze(false);
    }

    /// Kills until it can be removed, for a second at most: its processes are not ours to reap. Whether
    /// it is gone.
    fn kill_and_remove(&self) -> bool {
        (0..1000).any(|_| {
            self.kill();
            self.remove().is_ok() || {
                thread::sleep(Duration::from_millis(1));
                false
            }
        })
    }

    /// CPU time of all that ever ran in it, in nanoseconds; None where it is not counted.
    pub fn cpu_ns(&self) -> Option<u64> {
        parse_cpu(self.kind, &fs::read_to_string(self.cpu.as_ref()?).ok()?)
    }

    /// Removes it, with groups that were made below it. An error while it has members.
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

    /// A folder that can be made but not joined (no delegation) is of no use.
    fn require_joinable(self) -> Option<Self> {
        if self.join().is_ok() {
            return Some(self);
        }
        let _ = self.remove();
        None
    }
}

/// Reads `cpu.stat` of version 2, or `cpuacct.usage` of version 1; nanoseconds.
fn parse_cpu(kind: CgroupVersion, text: &str) -> Option<u64> {
    match kind {
        CgroupVersion::V1 => text.trim().parse().ok(),
        CgroupVersion::V2 => {
            let micros = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
            micros.trim().parse::<u64>().ok()?.checked_mul(1000)
        }
    }
}

fn remove_tree(folder: &Path) -> io::Result<()> {
    for below in folders_in(folder) {
        remove_tree(&below)?;
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    /// Ends a whole group of three processes, two of them in a session of their own, and removes it.
    fn ends_and_removes(group: Cgroup) {
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
    fn a_group_of_each_kind_ends_all_its_processes() {
        let cgroups = Cgroups::find(&SysRoot::real());
        let name = |number| Owner::current(&SysRoot::real()).resource_name(number);
        for (made, kind) in [(cgroups.create_v2(&name(1)), "version 2"), (cgroups.create_v1(&name(2)), "version 1")] {
            match made {
                Some(group) => ends_and_removes(group),
                None => eprintln!("SKIPPED: no cgroup of {kind} can be made here"),
            }
        }
    }

    #[test]
    fn a_group_whose_owner_is_gone_is_stale_and_one_of_ours_is_not() {
        let root = SysRoot::real();
        let cgroups = Cgroups::find(&root);
        let mine = Owner::current(&root).resource_name(3);
        let other = mine.replace(&format!("-{:08}-", std::process::id()), "-99999999-");
        let (Some(mine), Some(other)) = (cgroups.create(&mine), cgroups.create(&other)) else {
            eprintln!("SKIPPED: no cgroup can be made here");
            return;
        };
        cgroups.remove_stale(&root);
        assert!(!other.folder().exists());
        assert!(mine.folder().exists());
        mine.remove().unwrap();
    }

    #[test]
    fn a_system_without_cgroups_makes_none() {
        let cgroups = Cgroups::find(&SysRoot::at("/nosuch"));
        assert_eq!(cgroups, Cgroups::default());
        assert!(cgroups.create("x").is_none());
        assert!(cgroups.remove_stale(&SysRoot::real()).is_empty());
    }

    #[test]
    fn both_kinds_of_cpu_time_are_nanoseconds() {
        assert_eq!(parse_cpu(CgroupVersion::V2, "usage_usec 12\nuser_usec 7\n"), Some(12_000));
        assert_eq!(parse_cpu(CgroupVersion::V1, "12345\n"), Some(12345));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(usage_usec )?[0-9]{0,25}\\PC{0,5}") {
            parse_cpu(CgroupVersion::V1, &text);
            parse_cpu(CgroupVersion::V2, &text);
        }
    }
}
