//! Process groups of one attempt: membership and termination, by cgroup or by descent.
//!
//! If a cgroup can be created, it defines membership. Otherwise membership is by descent, and for orphans (which become
//! children of the agent) by their session and the environment they were started with. Daemons are included either way.

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

use crate::protocol::{Fault, FolderHandle, TeardownReport};

use super::{Agent, files};

/// Environment variable that names the group of a process.
pub(super) const GROUP_VARIABLE: &str = "WEIGHBRIDGE_GROUP";

/// How long killed processes may take to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Kills leftover processes of groups whose agents were killed, where no cgroup did so.
pub(super) fn kill_stale(root: &SysRoot) {
    for entry in tree::all(root) {
        let owner = tree::initial_variable(root, entry.pid, GROUP_VARIABLE).and_then(|name| Owner::parse(&name));
        if owner.is_some_and(|owner| owner.is_gone(root)) {
            tree::signal(&entry, Signal::KILL);
        }
    }
}

/// Folder inside a group's folder that comes first on its `PATH` and holds the replaced programs.
pub(super) const PROGRAMS_FOLDER: &str = ".programs";

/// Links the replacement programs of a group into its folder.
fn link_programs(folder: &Path, overrides: &ProcessEnvironment) -> Result<(), Fault> {
    if overrides.programs.is_empty() {
        return Ok(());
    }
    let programs = folder.join(PROGRAMS_FOLDER);
    let link = || {
        fs::create_dir(&programs)?;
        overrides.programs.iter().try_for_each(|(name, file)| symlink(file, programs.join(name)))
    };
    link().map_err(|error: std::io::Error| files::file_fault(programs.display(), &error))
}

/// A process group of this agent.
pub(super) struct LiveGroup {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// Environment variables and program replacements of its processes.
    pub(super) overrides: ProcessEnvironment,
    /// Numbers of its changes in the undo log.
    pub(super) changes: RefCell<BTreeSet<u32>>,
    pub(super) cgroup: Option<Cgroup>,
    /// Processes started in it, alive or not; each is the leader of its session.
    pub(super) roots: RefCell<BTreeSet<u32>>,
    /// Other processes that were once observed as members.
    past_members: RefCell<BTreeSet<u32>>,
    /// Resources used by its processes that have exited.
    usage: Cell<ResourceUsage>,
}

impl LiveGroup {
    /// Adds the usage of a process that has exited, and forgets its id.
    pub(super) fn record_reaped(&self, reaped: &ReapedChild) {
        let (mut total, usage) = (self.usage.get(), reaped.usage);
        total.user_ns += usage.user_ns;
        total.system_ns += usage.system_ns;
        total.read_bytes += usage.read_bytes;
        total.written_bytes += usage.written_bytes;
        self.usage.set(total);
        self.past_members.borrow_mut().remove(&reaped.pid);
    }

    /// Resources used by its processes that have exited.
    pub(super) fn usage(&self) -> ResourceUsage {
        self.usage.get()
    }
}

/// Process ids of the processes that were killed, and of those among them that survived.
#[must_use]
struct Killed {
    killed: Vec<u32>,
    unkillable: Vec<u32>,
}

impl Agent {
    /// Creates a group.
    pub(super) fn create_group(&self, overrides: ProcessEnvironment) -> Result<FolderHandle, Fault> {
        let targets = overrides.programs.values();
        let missing = targets.clone().find(|file| files::find_program(file, "", Path::new("/")).is_none());
        if let Some(program) = missing {
            return Err(Fault::ProgramNotFound { program: program.clone(), path: None });
        }
        let id = self.next_id();
        let name = self.home.unique_name(id);
        let mut handle = self.home.create_scratch(id, None)?;
        let cgroup = self.cgroups.create(&name);
        handle.cgroup = cgroup.as_ref().map(|cgroup| cgroup.folder().display().to_string());
        let folder = PathBuf::from(&handle.path);
        if let Err(fault) = link_programs(&folder, &overrides) {
            self.home.remove_scratch(id)?;
            return Err(fault);
        }
        let group = LiveGroup {
            id,
            name,
            folder,
            overrides,
            changes: RefCell::default(),
            cgroup,
            roots: RefCell::default(),
            past_members: RefCell::default(),
            usage: Cell::default(),
        };
        self.groups.borrow_mut().insert(id, Rc::new(group));
        Ok(handle)
    }

    /// Kills every process of a group and removes it.
    pub(super) async fn teardown(&self, id: u32) -> Result<TeardownReport, Fault> {
        // A change of the machine in progress does not run inside the group; the lock waits for it.
        let mut log = self.log.lock().await;
        let group = self.group(id)?;
        let Killed { killed, unkillable } = self.kill_all(&|| self.members(&group), group.cgroup.as_ref()).await;
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
        let (reverted, fault) = Self::put_back(&mut log, group.changes.take()).await;
        // Reported with the rest: the group is gone, and a fault in place of the report would lose it.
        let folder = self.home.remove_scratch(id).err();
        Ok(TeardownReport { killed, unkillable, reverted, fault, folder })
    }

    /// Kills all descendants of the agent that no longer belong to a group.
    pub(super) async fn kill_strays(&self) {
        // The agent is ending: nobody is left to report to.
        let _ = self.kill_all(&|| self.own_descendants(), None).await;
    }

    /// Lists the living processes of a group.
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

    /// Finds the group of an orphan, by past membership or because there is only one group.
    pub(super) fn group_of(&self, pid: u32) -> Option<Rc<LiveGroup>> {
        let groups = self.groups.borrow();
        let by_membership = groups.values().find(|group| group.past_members.borrow().contains(&pid));
        let only = if groups.len() == 1 { groups.values().next() } else { None };
        by_membership.or(only).cloned()
    }

    /// Determines the members of a group without a cgroup: all descendants of the agent if it is the only group;
    /// otherwise those that are a root or in a root's session, were observed as members, have the group's name in their
    /// environment or their working directory in its folder, and the descendants of all these.
    fn members_by_descent(&self, group: &LiveGroup) -> Vec<ProcessStat> {
        let candidates = self.own_descendants();
        if self.groups.borrow().len() == 1 {
            return candidates;
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
        let members = candidates.iter().filter(belongs).map(|entry| entry.pid).collect();
        tree::descendants(&candidates, &members)
    }

    fn own_descendants(&self) -> Vec<ProcessStat> {
        let own_pid = std::process::id();
        let mut descendants = tree::descendants(&tree::all(&self.root), &BTreeSet::from([own_pid]));
        descendants.retain(|entry| entry.pid != own_pid && !entry.is_zombie());
        descendants
    }

    /// Kills members until none is left, reaping meanwhile.
    async fn kill_all(&self, members: &dyn Fn() -> Vec<ProcessStat>, cgroup: Option<&Cgroup>) -> Killed {
        let start_time = Instant::now();
        let mut killed = BTreeSet::new();
        self.reap();
        loop {
            let alive = members();
            if alive.is_empty() || start_time.elapsed() > KILL_TIMEOUT {
                let unkillable = alive.into_iter().map(|entry| entry.pid).collect();
                return Killed { killed: killed.into_iter().collect(), unkillable };
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
