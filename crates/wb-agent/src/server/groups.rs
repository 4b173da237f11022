//! Groups: what belongs to one attempt, found and ended whole, daemons included.
//!
//! Where a cgroup can be made, it says who belongs. Where not, descent does, and for what lost its
//! parent (an orphan becomes the agent's child) the session it was in and the environment it was
//! started with.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::time::sleep;
use wb_model::ProcessEnvironment;
use wb_sys::SysRoot;
use wb_sys::cgroup::Cgroup;
use wb_sys::process::{Owner, ProcessStat, ReapedChild, ResourceUsage, tree};

use crate::protocol::{Fault, FolderHandle};
use crate::worker::TeardownReport;

use super::{Agent, files};

/// The environment variable that tells a process's group.
pub(super) const GROUP_VARIABLE: &str = "WEIGHBRIDGE_GROUP";

/// How long killed processes may take to be gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Ends processes of groups whose agents were killed, wherever a cgroup did not do it.
pub(super) fn kill_stale(root: &SysRoot) {
    for entry in tree::all(root) {
        let owner = tree::initial_variable(root, entry.pid, GROUP_VARIABLE).and_then(|name| Owner::parse(&name));
        if owner.is_some_and(|owner| owner.is_gone(root)) {
            tree::signal(&entry, Signal::KILL);
        }
    }
}

/// The folder, in a group's, that stands before all others on the path where programs are replaced.
pub(super) const PROGRAMS_FOLDER: &str = ".programs";

/// Puts the programs that are found in the place of others where they are.
fn link_programs(folder: &Path, found: &ProcessEnvironment) -> Result<(), Fault> {
    if found.programs.is_empty() {
        return Ok(());
    }
    let programs = folder.join(PROGRAMS_FOLDER);
    let link = || {
        fs::create_dir(&programs)?;
        found.programs.iter().try_for_each(|(name, file)| symlink(file, programs.join(name)))
    };
    link().map_err(|error: std::io::Error| files::file_fault(programs.display(), &error))
}

/// A group.
pub(super) struct LiveGroup {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// What its processes find.
    pub(super) overrides: ProcessEnvironment,
    /// The undo log's numbers of what is changed for it.
    pub(super) changes: RefCell<BTreeSet<u32>>,
    pub(super) cgroup: Option<Cgroup>,
    /// The processes that were started in it, alive or not; their ids are their sessions' too.
    pub(super) roots: RefCell<BTreeSet<u32>>,
    /// Others that were seen to belong to it.
    past_members: RefCell<BTreeSet<u32>>,
    /// What its ended processes used.
    usage: Cell<ResourceUsage>,
}

impl LiveGroup {
    /// Adds what an ended process of it used, and forgets its id.
    pub(super) fn record_reaped(&self, reaped: &ReapedChild) {
        let (mut used, one) = (self.usage.get(), reaped.usage);
        used.user_ns += one.user_ns;
        used.system_ns += one.system_ns;
        used.read_bytes += one.read_bytes;
        used.written_bytes += one.written_bytes;
        self.usage.set(used);
        self.past_members.borrow_mut().remove(&reaped.pid);
    }

    /// What its ended processes used.
    pub(super) fn usage(&self) -> ResourceUsage {
        self.usage.get()
    }
}

impl Agent {
    /// Makes a group.
    pub(super) fn create_group(&self, found: ProcessEnvironment) -> Result<FolderHandle, Fault> {
        let targets = found.programs.values();
        let missing = targets.clone().find(|file| files::find_program(file, "", Path::new("/")).is_none());
        if let Some(program) = missing {
            return Err(Fault::ProgramNotFound { program: program.clone(), path: None });
        }
        let id = self.next_id();
        let name = self.home.unique_name(id);
        let mut place = self.home.create_scratch(id, None)?;
        let cgroup = self.cgroups.create(&name);
        place.cgroup = cgroup.as_ref().map(|cgroup| cgroup.folder().display().to_string());
        let folder = PathBuf::from(&place.path);
        if let Err(fault) = link_programs(&folder, &found) {
            self.home.remove_scratch(id)?;
            return Err(fault);
        }
        let group = LiveGroup {
            id,
            name,
            folder,
            overrides: found,
            changes: RefCell::default(),
            cgroup,
            roots: RefCell::default(),
            past_members: RefCell::default(),
            usage: Cell::default(),
        };
        self.groups.borrow_mut().insert(id, Rc::new(group));
        Ok(place)
    }

    /// Ends every process of a group and removes it.
    pub(super) async fn teardown(&self, id: u32) -> Result<TeardownReport, Fault> {
        // What changes the machine for a group is none of what it started, and is waited for.
        let mut log = self.log.lock().await;
        let group = self.group(id)?;
        let mut report = self.kill_all(&|| self.members(&group), group.cgroup.as_ref()).await;
        if let Some(cgroup) = &group.cgroup {
            // A cgroup is busy for a moment after its last process was reaped.
            for _ in 0..100 {
                match cgroup.remove() {
                    Ok(()) => break,
                    Err(_) => sleep(Duration::from_millis(1)).await,
                }
            }
        }
        self.groups.borrow_mut().remove(&id);
        (report.reverted, report.fault) = Self::put_back(&mut log, group.changes.take()).await;
        self.home.remove_scratch(id)?;
        Ok(report)
    }

    /// Ends whatever descends from the agent and belongs to no group any more.
    pub(super) async fn kill_strays(&self) {
        self.kill_all(&|| self.own_descendants(), None).await;
    }

    /// The living processes of a group.
    pub(super) fn members(&self, group: &LiveGroup) -> Vec<ProcessStat> {
        let members: Vec<ProcessStat> = match &group.cgroup {
            Some(cgroup) => cgroup.members().into_iter().filter_map(|pid| tree::read_stat(&self.root, pid)).collect(),
            None => self.members_by_descent(group),
        };
        let mut members = members;
        members.retain(|entry| !entry.is_zombie());
        group.past_members.borrow_mut().extend(members.iter().map(|entry| entry.pid));
        members
    }

    /// The group that an orphan belonged to, as far as it was seen.
    pub(super) fn group_of(&self, pid: u32) -> Option<Rc<LiveGroup>> {
        let groups = self.groups.borrow();
        let seen = groups.values().find(|group| group.past_members.borrow().contains(&pid));
        let only = if groups.len() == 1 { groups.values().next() } else { None };
        seen.or(only).cloned()
    }

    /// The members of a group without a cgroup: all of ours when there is no other group, else what
    /// descends from a root, is in a root's session, was seen in the group, was started with its name, or
    /// is in its folder.
    fn members_by_descent(&self, group: &LiveGroup) -> Vec<ProcessStat> {
        let ours = self.own_descendants();
        if self.groups.borrow().len() == 1 {
            return ours;
        }
        let seen = group.past_members.borrow();
        let roots = group.roots.borrow();
        let belongs = |entry: &&ProcessStat| {
            roots.contains(&entry.pid)
                || roots.contains(&entry.session)
                || seen.contains(&entry.pid)
                || tree::initial_variable(&self.root, entry.pid, GROUP_VARIABLE).as_ref() == Some(&group.name)
                || tree::working_folder(&self.root, entry.pid).is_some_and(|folder| folder.starts_with(&group.folder))
        };
        let heads = ours.iter().filter(belongs).map(|entry| entry.pid).collect();
        tree::descendants(&ours, &heads)
    }

    fn own_descendants(&self) -> Vec<ProcessStat> {
        let me = std::process::id();
        let mut found = tree::descendants(&tree::all(&self.root), &BTreeSet::from([me]));
        found.retain(|entry| entry.pid != me && !entry.is_zombie());
        found
    }

    /// Kills until none is left, reaping meanwhile.
    async fn kill_all(&self, members: &dyn Fn() -> Vec<ProcessStat>, cgroup: Option<&Cgroup>) -> TeardownReport {
        let start = Instant::now();
        let mut killed = BTreeSet::new();
        self.reap();
        loop {
            let alive = members();
            if alive.is_empty() || start.elapsed() > KILL_TIMEOUT {
                let left = alive.into_iter().map(|entry| entry.pid).collect();
                return TeardownReport {
                    killed: killed.into_iter().collect(),
                    unkillable: left,
                    ..TeardownReport::default()
                };
            }
            killed.extend(alive.iter().map(|entry| entry.pid));
            match cgroup {
                Some(cgroup) => cgroup.kill(),
                None => alive.iter().for_each(|entry| {
                    tree::signal(entry, Signal::KILL);
                }),
            }
            sleep(Duration::from_millis(1)).await;
            self.reap();
        }
    }
}
