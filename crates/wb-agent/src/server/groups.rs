//! Groups: the processes of one attempt, how they are found and how they are killed. Not POSIX process groups.
//!
//! If a cgroup can be created for a group, its members are those of the cgroup, and the sessions of processes that were
//! started in another one. Otherwise they are found among the descendants of the agent, which adopts orphans: by their
//! session, their initial environment and their working directory. Daemons are included either way.

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

use crate::protocol::{CleanupCommand, Command, Fault, GroupHandle, TeardownReport};

use super::pending_cleanup::PendingCleanup;
use super::processes::environment;
use super::tuning::run_blocking;
use super::{Agent, files};

/// Environment variable with the name of a process's group.
pub(super) const GROUP_VARIABLE: &str = "WEIGHBRIDGE_GROUP";

/// How long killed processes may take to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Kills processes left by agents that were killed: those whose initial environment names a group of such an agent.
pub(super) fn kill_stale(root: &SysRoot) {
    for entry in tree::all(root) {
        let owner = tree::initial_variable(root, entry.pid, GROUP_VARIABLE).and_then(|name| Owner::parse(&name));
        if owner.is_some_and(|owner| owner.is_gone(root)) {
            tree::signal(&entry, Signal::KILL);
        }
    }
}

/// Folder of the replacement programs in a group's scratch folder; it comes first on the group's `PATH`.
pub(super) const PROGRAMS_FOLDER: &str = ".programs";

/// Links the replacement programs of a group into its [`PROGRAMS_FOLDER`].
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

/// A group of this agent that is not torn down yet.
pub(super) struct LiveGroup {
    pub(super) id: u32,
    /// Its name, unique on the machine.
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// Environment variables and program replacements of its processes.
    pub(super) overrides: ProcessEnvironment,
    /// Numbers of the changes of the machine that it has made, in the undo log.
    pub(super) changes: RefCell<BTreeSet<u32>>,
    /// Commands that undo what its processes do outside of its folder; they are recorded, too.
    cleanup: RefCell<Option<PendingCleanup>>,
    /// Its cgroup; `None` if none could be created.
    pub(super) cgroup: Option<Cgroup>,
    /// Ids of the processes that the agent started in it, alive or not; each leads a session of its own.
    pub(super) session_leaders: RefCell<BTreeSet<u32>>,
    /// Ids of the session leaders that were started in another cgroup than the group's.
    pub(super) leaders_elsewhere: RefCell<BTreeSet<u32>>,
    /// Ids of all processes that were observed as members and are not reaped yet.
    observed_members: RefCell<BTreeSet<u32>>,
    /// Resources used by its processes that have exited.
    usage: Cell<ResourceUsage>,
}

impl LiveGroup {
    /// Adds the resources used by a process that was reaped, whose id may be reused from now on.
    pub(super) fn record_reaped(&self, reaped: &ReapedChild) {
        let (mut total, usage) = (self.usage.get(), reaped.usage);
        total.user_ns += usage.user_ns;
        total.system_ns += usage.system_ns;
        total.read_bytes += usage.read_bytes;
        total.written_bytes += usage.written_bytes;
        self.usage.set(total);
        self.observed_members.borrow_mut().remove(&reaped.pid);
    }

    /// Resources used by its processes that have exited.
    pub(super) fn usage(&self) -> ResourceUsage {
        self.usage.get()
    }
}

/// The outcome of killing processes.
#[must_use]
struct KillOutcome {
    /// Ids of the processes that were sent SIGKILL.
    signalled: Vec<u32>,
    /// Ids of those that are still alive.
    survivors: Vec<u32>,
}

impl Agent {
    /// Creates a group, whose processes get these environment variables and program replacements.
    pub(super) fn create_group(&self, overrides: ProcessEnvironment) -> Result<GroupHandle, Fault> {
        let mut replacements = overrides.programs.values();
        let missing = replacements.find(|file| files::find_program(file, "", Path::new("/")).is_none());
        if let Some(program) = missing {
            return Err(Fault::ProgramNotFound { program: program.clone(), path: None });
        }
        let id = self.next_id();
        let name = self.agent_folder.unique_name(id);
        let scratch = self.agent_folder.create_scratch(id, None)?;
        let cgroup = self.cgroups.create(&name);
        let handle = GroupHandle {
            id,
            folder: scratch.path,
            cgroup: cgroup.as_ref().map(|cgroup| cgroup.folder().display().to_string()),
        };
        let folder = PathBuf::from(&handle.folder);
        if let Err(fault) = link_programs(&folder, &overrides) {
            self.agent_folder.remove_scratch(id)?;
            return Err(fault);
        }
        let group = LiveGroup {
            id,
            name,
            folder,
            overrides,
            changes: RefCell::default(),
            cleanup: RefCell::default(),
            cgroup,
            session_leaders: RefCell::default(),
            leaders_elsewhere: RefCell::default(),
            observed_members: RefCell::default(),
            usage: Cell::default(),
        };
        self.groups.borrow_mut().insert(id, Rc::new(group));
        Ok(handle)
    }

    /// Sets the cleanup commands of a group, and records them for the next agent.
    pub(super) fn set_cleanup(&self, group: u32, commands: &[CleanupCommand]) -> Result<(), Fault> {
        let group = self.group(group)?;
        let env = environment(&group, &Command::new(["sh"]));
        let cleanup = PendingCleanup { folder: group.folder.clone(), env, commands: commands.to_vec() };
        cleanup.record(self.agent_folder.path(), group.id)?;
        *group.cleanup.borrow_mut() = Some(cleanup).filter(|cleanup| !cleanup.commands.is_empty());
        Ok(())
    }

    /// Runs the cleanup commands of a group that were not withdrawn; returns what failed.
    async fn run_cleanup(&self, group: &LiveGroup) -> Vec<String> {
        let Some(mut cleanup) = group.cleanup.take() else { return Vec::new() };
        let (mut errors, done) = run_blocking(move || {
            let errors = cleanup.run();
            cleanup.commands.clear();
            (errors, cleanup)
        })
        .await;
        errors.extend(done.record(self.agent_folder.path(), group.id).err().map(|fault| fault.to_string()));
        errors
    }

    /// Kills every process of a group, runs its cleanup commands, reverts its changes and removes it.
    pub(super) async fn teardown(&self, id: u32) -> Result<TeardownReport, Fault> {
        // The lock waits for a change in progress: it is made by the agent, not by a process of the group.
        let mut log = self.log.lock().await;
        let group = self.group(id)?;
        let KillOutcome { signalled, survivors } = self.kill_all(&|| self.members(&group), group.cgroup.as_ref()).await;
        if let Some(cgroup) = &group.cgroup {
            // A cgroup is busy for a moment after its last process was reaped.
            for _ in 0..100 {
                match cgroup.remove() {
                    Ok(()) => break,
                    Err(_) => sleep(Duration::from_millis(1)).await,
                }
            }
        }
        let cleanup_errors = self.run_cleanup(&group).await;
        self.groups.borrow_mut().remove(&id);
        let (reverted, revert_error) = Self::revert_changes(&mut log, group.changes.take()).await;
        // Reported with the rest: the group is gone, and a fault in place of the report would lose it.
        let folder_error = self.agent_folder.remove_scratch(id).err();
        Ok(TeardownReport {
            killed: signalled,
            unkillable: survivors,
            reverted,
            cleanup_errors,
            revert_error,
            folder_error,
        })
    }

    /// Kills all remaining descendants of the agent, once its groups are torn down.
    pub(super) async fn kill_remaining(&self) {
        // Survivors cannot be reported: the agent is ending.
        let _ = self.kill_all(&|| self.own_descendants(), None).await;
    }

    /// Lists the living processes of a group, and records them as observed.
    pub(super) fn members(&self, group: &LiveGroup) -> Vec<ProcessStat> {
        let members: Vec<ProcessStat> = match &group.cgroup {
            Some(cgroup) => {
                let inside = cgroup.members().into_iter().filter_map(|pid| tree::read_stat(&self.root, pid));
                inside.chain(self.members_elsewhere(group)).collect()
            }
            None => self.members_by_descent(group),
        };
        let mut members = members;
        members.retain(|entry| !entry.is_zombie());
        group.observed_members.borrow_mut().extend(members.iter().map(|entry| entry.pid));
        members
    }

    /// The processes that were started in another cgroup than the group's own, and the processes in their sessions.
    fn members_elsewhere(&self, group: &LiveGroup) -> Vec<ProcessStat> {
        let leaders = group.leaders_elsewhere.borrow();
        if leaders.is_empty() {
            return Vec::new();
        }
        let mut members = self.own_descendants();
        // Their cgroup may hold others, too: a bench starts them in one that is not of their attempt
        // (`Command::cgroup`).
        members.retain(|entry| leaders.contains(&entry.session));
        members
    }

    /// Finds the group of an orphan that has exited: the one that it was observed in, or else the only group.
    pub(super) fn group_of(&self, pid: u32) -> Option<Rc<LiveGroup>> {
        let groups = self.groups.borrow();
        let by_observation = groups.values().find(|group| group.observed_members.borrow().contains(&pid));
        let only = if groups.len() == 1 { groups.values().next() } else { None };
        by_observation.or(only).cloned()
    }

    /// Determines the members of a group without a cgroup: all descendants of the agent if it is the only group;
    /// otherwise those that lead or are in one of its sessions, were observed as members, have the group's name in their
    /// initial environment or their working directory in its folder, and the descendants of all these.
    fn members_by_descent(&self, group: &LiveGroup) -> Vec<ProcessStat> {
        let candidates = self.own_descendants();
        if self.groups.borrow().len() == 1 {
            return candidates;
        }
        let observed = group.observed_members.borrow();
        let session_leaders = group.session_leaders.borrow();
        let is_member = |entry: &&ProcessStat| {
            session_leaders.contains(&entry.pid)
                || session_leaders.contains(&entry.session)
                || observed.contains(&entry.pid)
                || tree::initial_variable(&self.root, entry.pid, GROUP_VARIABLE).as_ref() == Some(&group.name)
                || tree::working_folder(&self.root, entry.pid).is_some_and(|folder| folder.starts_with(&group.folder))
        };
        let members = candidates.iter().filter(is_member).map(|entry| entry.pid).collect();
        tree::descendants(&candidates, &members)
    }

    /// Lists the living descendants of the agent.
    fn own_descendants(&self) -> Vec<ProcessStat> {
        let own_pid = std::process::id();
        let mut descendants = tree::descendants(&tree::all(&self.root), &BTreeSet::from([own_pid]));
        descendants.retain(|entry| entry.pid != own_pid && !entry.is_zombie());
        descendants
    }

    /// Kills processes until `members` lists none, or [`KILL_TIMEOUT`] is over; exited ones are reaped meanwhile.
    async fn kill_all(&self, members: &dyn Fn() -> Vec<ProcessStat>, cgroup: Option<&Cgroup>) -> KillOutcome {
        let start_time = Instant::now();
        let mut signalled = BTreeSet::new();
        self.reap();
        loop {
            let alive = members();
            if alive.is_empty() || start_time.elapsed() > KILL_TIMEOUT {
                let survivors = alive.into_iter().map(|entry| entry.pid).collect();
                return KillOutcome { signalled: signalled.into_iter().collect(), survivors };
            }
            signalled.extend(alive.iter().map(|entry| entry.pid));
            if let Some(cgroup) = cgroup {
                cgroup.kill();
            }
            for entry in &alive {
                tree::signal(entry, Signal::KILL);
            }
            sleep(Duration::from_millis(1)).await;
            self.reap();
        }
    }
}
