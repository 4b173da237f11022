//! Announcements of agents to the agents of other controllers on this machine: active runs and exclusive use. Each is a
//! file that the agent keeps locked.
//!
//! The files are in a folder that all users can write to, whatever their TMPDIR is. A locked file is in force if the
//! process in its name lives and runs as the owner of the file; an unlocked one was left by a killed agent. An agent in
//! another PID namespace is invisible, so only root and this user are believed there. What a file says about its
//! controller is shown, but who has written it is known from the file itself.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use wb_model::is_unprintable;
use wb_sys::file_lock::is_locked;
use wb_sys::process::{Owner, ProcessUser};
use wb_sys::{FileLock, LockError, SysRoot, users};

use crate::protocol::{AgentSession, Controller};

/// Environment variable that sets the folder for announcements, for machines where several systems share the default
/// one.
const FOLDER_VARIABLE: &str = "WEIGHBRIDGE_LOCKS";
/// Folders that every user can write to on common distributions, in order of preference.
const SHARED_FOLDERS: [&str; 3] = ["/run/lock", "/tmp", "/dev/shm"];
/// Mode: writable for all, with the sticky bit (users can remove only their own files).
const STICKY_MODE: u32 = 0o1777;
/// Maximum size of an announcement, in bytes.
const MAX_ANNOUNCEMENT_SIZE: u64 = 4096;
/// Maximum number of names that are tried for a new announcement.
const MAX_NAMES: u32 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnnouncementKind {
    /// A run is active; others may be active too.
    Run,
    /// The machine is used exclusively by one controller.
    Exclusive,
}

impl AnnouncementKind {
    /// Suffix of its file names.
    fn suffix(self) -> &'static str {
        match self {
            Self::Run => "-run",
            Self::Exclusive => "-exclusive",
        }
    }
}

/// Returns the folder for announcements of all users.
pub(super) fn folder() -> PathBuf {
    let is_shared = |folder: &str| {
        fs::metadata(folder)
            .is_ok_and(|metadata| metadata.is_dir() && metadata.permissions().mode() & STICKY_MODE == STICKY_MODE)
    };
    let configured = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let shared = || SHARED_FOLDERS.into_iter().find(|folder| is_shared(folder)).map(PathBuf::from);
    configured.or_else(shared).unwrap_or_else(std::env::temp_dir)
}

/// An announcement; withdrawn when this is dropped.
#[derive(Debug)]
pub(super) struct Announcement {
    pub(super) holder: AgentSession,
    path: PathBuf,
    _lock: FileLock,
}

impl Announcement {
    /// Creates an announcement for a controller in a folder.
    pub(super) fn new(folder: &Path, owner: Owner, kind: AnnouncementKind, controller: Controller) -> io::Result<Self> {
        let path = folder.join(format!("{owner}{}", kind.suffix()));
        let (unfinished, lock) = create_unfinished(folder, owner)?;
        let holder = AgentSession::new(controller);
        // Renamed into place once it is locked and complete: readers briefly lock the files that they find.
        let publish = || {
            lock.file().write_all(&serde_json::to_vec(&holder)?)?;
            lock.file().set_permissions(fs::Permissions::from_mode(0o644))?;
            fs::rename(&unfinished, &path)
        };
        let result = publish();
        if let Err(error) = result {
            return fs::remove_file(&unfinished).and(Err(error));
        }
        Ok(Self { holder, path, _lock: lock })
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // A file that cannot be removed is no longer locked and thus not in force.
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates a file that becomes an announcement, and locks it: nobody else may open it, and thereby lock it, before.
/// Everybody can add to the folder, so that a name may be taken.
fn create_unfinished(folder: &Path, owner: Owner) -> io::Result<(PathBuf, FileLock)> {
    for number in 0..MAX_NAMES {
        let path = folder.join(format!("{owner}-new{number}"));
        let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match FileLock::try_acquire(&path, open) {
            Err(LockError::Open(error)) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return Ok((path, other?)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Lists the active runs of all users on this machine.
pub fn announced_runs() -> Vec<AgentSession> {
    read_announcements(&SysRoot::real(), &folder(), AnnouncementKind::Run)
}

/// Lists the announcements of a kind in a folder, except those of one controller.
pub(super) fn read_others(
    root: &SysRoot,
    folder: &Path,
    kind: AnnouncementKind,
    excluded: &Controller,
) -> Vec<AgentSession> {
    let mut holders = read_announcements(root, folder, kind);
    holders.retain(|holder| holder.controller != *excluded);
    holders
}

/// Lists the announcements of a kind in a folder.
pub(super) fn read_announcements(root: &SysRoot, folder: &Path, kind: AnnouncementKind) -> Vec<AgentSession> {
    let read = |entry: fs::DirEntry| {
        let owner = Owner::parse(entry.file_name().to_str()?.strip_suffix(kind.suffix())?)?;
        read(root, &entry.path(), owner)
    };
    let mut holders: Vec<AgentSession> =
        fs::read_dir(folder).into_iter().flatten().flatten().filter_map(read).collect();
    holders.sort();
    holders
}

/// Announces exclusive use of the machine by a controller; fails with the present holder, if there is one.
///
/// Agents of one user are serialised by a lock. Agents of different users that start at the same moment may find each
/// other and both fail.
pub(super) fn announce_exclusive(
    root: &SysRoot,
    folder: &Path,
    owner: Owner,
    controller: &Controller,
) -> Result<Option<Announcement>, AgentSession> {
    // If the announcement cannot be written, only the lock of this user protects the machine.
    let announcement = Announcement::new(folder, owner, AnnouncementKind::Exclusive, controller.clone()).ok();
    match read_others(root, folder, AnnouncementKind::Exclusive, controller).into_iter().next() {
        Some(holder) => Err(holder),
        None => Ok(announcement),
    }
}

/// Reads the announcement of an agent; none if it is not in force.
fn read(root: &SysRoot, path: &Path, agent: Owner) -> Option<AgentSession> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || !is_locked(&file) || !is_credible(root, agent, metadata.uid()) {
        return None;
    }
    let mut text = Vec::new();
    file.take(MAX_ANNOUNCEMENT_SIZE).read_to_end(&mut text).ok()?;
    let mut holder: AgentSession = serde_json::from_slice(&text).ok()?;
    // Any user can write these files: what can be known without their content is not taken from it.
    holder.owner = Some(users::name(root, metadata.uid()));
    holder.agent = agent.pid();
    holder.controller.user.retain(|letter| !is_unprintable(letter));
    Some(holder)
}

/// Whether a file of a user can be the announcement of an agent: a living process of this user.
fn is_credible(root: &SysRoot, agent: Owner, user: u32) -> bool {
    match agent.user(root) {
        ProcessUser::Known(runs_as) => runs_as == user,
        ProcessUser::Gone => false,
        ProcessUser::Hidden => user == 0 || user == rustix::process::geteuid().as_raw(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;

    fn others(folder: &Path, kind: AnnouncementKind, excluded: &Controller) -> Vec<AgentSession> {
        read_others(&SysRoot::real(), folder, kind, excluded)
    }

    #[test]
    fn announced_runs_of_other_controllers_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, owner) = (folder.path(), Owner::current(&SysRoot::real()));
        let controller = |user: &str| Controller { user: user.to_owned(), pid: 7 };
        let (anna, bert) = (controller("anna@desk"), controller("bert@lap"));
        assert_eq!(others(path, AnnouncementKind::Run, &bert), []);

        let announcement =
            Announcement::new(path, owner, AnnouncementKind::Run, controller("an\x1b[31mna@desk")).unwrap();
        let holders = others(path, AnnouncementKind::Run, &bert);
        assert_eq!(holders.len(), 1);
        assert_eq!((holders[0].controller.user.as_str(), holders[0].agent), ("an[31mna@desk", std::process::id()));
        drop(announcement);
        assert_eq!(fs::read_dir(path).unwrap().count(), 0);

        // Several agents of one controller are one run.
        let announcement = Announcement::new(path, owner, AnnouncementKind::Run, anna.clone()).unwrap();
        assert_eq!(others(path, AnnouncementKind::Run, &anna), []);
        assert_eq!(
            read_announcements(&SysRoot::real(), path, AnnouncementKind::Run),
            std::slice::from_ref(&announcement.holder)
        );
        // The file of a killed agent is not locked.
        let stale =
            path.join(owner.to_string().replace("weighbridge-0", "weighbridge-1") + AnnouncementKind::Run.suffix());
        fs::copy(&announcement.path, &stale).unwrap();
        fs::write(path.join("weighbridge-notes"), "").unwrap();
        assert_eq!(others(path, AnnouncementKind::Run, &bert).len(), 1);
        assert_eq!(others(path, AnnouncementKind::Exclusive, &bert), []);
    }

    #[test]
    fn exclusive_use_is_refused_with_the_holder_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let owner = Owner::current(&SysRoot::real());
        let controller = |user: &str| Controller { user: user.to_owned(), pid: 7 };
        let take = |user: &str| announce_exclusive(&SysRoot::real(), folder.path(), owner, &controller(user));
        let first = take("anna@desk").unwrap();
        assert!(first.is_some());
        // The file name contains the owning process, which is the same for both here: move one out of the way, as if its
        // agent were in another PID namespace.
        let elsewhere = owner.to_string()[..owner.to_string().len() - 2].to_owned();
        fs::rename(&first.as_ref().unwrap().path, folder.path().join(format!("{elsewhere}-exclusive"))).unwrap();
        assert_eq!(take("bert@lap").unwrap_err().controller, controller("anna@desk"));
        drop(first);
        assert!(take("bert@lap").unwrap().is_some());
    }

    /// The other user: nobody.
    const OTHER: u32 = 65534;

    /// A process of another user that has locked a file until this is dropped.
    struct Holder(Child);

    impl Holder {
        fn lock(path: &Path) -> Self {
            let script = "exec 9<\"$1\"; flock 9; echo locked; exec sleep 1000";
            let mut command = Command::new("sh");
            command.args(["-c", script, "sh"]).arg(path).uid(OTHER).gid(OTHER).stdout(std::process::Stdio::piped());
            let mut child = command.spawn().unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0; 7]).unwrap();
            Self(child)
        }

        fn owner(&self) -> Owner {
            let started = wb_sys::process::tree::read_stat(&SysRoot::real(), self.0.id()).unwrap().started;
            let own = Owner::current(&SysRoot::real()).to_string();
            let namespace = own.rsplit('-').next().unwrap();
            Owner::parse(&format!("weighbridge-{}-{started}-{namespace}", self.0.id())).unwrap()
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    /// What another user plants: it names root, this process, and a time long ago.
    fn planted_text() -> String {
        format!(
            r#"{{"controller":{{"user":"root@desk","pid":1}},"agent":{},"owner":"root","since":"2026-01-01T00:00:00Z"}}"#,
            std::process::id()
        )
    }

    #[test]
    fn a_file_that_another_user_has_planted_and_locked_is_no_run() {
        if !rustix::process::geteuid().is_root() {
            wb_test_skip::skip!("another user's processes need root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let root = SysRoot::real();
        let own = Owner::current(&root).to_string();
        let init = wb_sys::process::tree::read_stat(&root, 1).unwrap().started;
        let namespace = own.rsplit('-').next().unwrap();
        let gone = format!("weighbridge-{}-1-{namespace}", u32::MAX);
        // Processes of root, none, one that has another start, and one in another PID namespace.
        let names = [
            own.clone(),
            format!("weighbridge-1-{init}-{namespace}"),
            gone,
            format!("weighbridge-{}-1-{namespace}", std::process::id()),
            "weighbridge-1-1-1".to_owned(),
        ];
        for kind in [AnnouncementKind::Run, AnnouncementKind::Exclusive] {
            for name in &names {
                let path = folder.path().join(format!("{name}{}", kind.suffix()));
                fs::write(&path, planted_text()).unwrap();
                chown(&path, Some(OTHER), None).unwrap();
                let holder = Holder::lock(&path);
                assert!(is_locked(&fs::File::open(&path).unwrap()));
                assert_eq!(read_announcements(&root, folder.path(), kind), [], "{name}");
                drop(holder);
                fs::remove_file(&path).unwrap();
            }
        }
    }

    #[test]
    fn the_announcement_of_a_living_process_counts_and_is_named_by_its_owner_whatever_it_says() {
        if !rustix::process::geteuid().is_root() {
            wb_test_skip::skip!("another user's processes need root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let (first, root) = (folder.path().join("planted"), SysRoot::real());
        fs::write(&first, planted_text()).unwrap();
        chown(&first, Some(OTHER), None).unwrap();
        let holder = Holder::lock(&first);
        let path = folder.path().join(format!("{}-run", holder.owner()));
        fs::rename(&first, &path).unwrap();
        let found = read_announcements(&root, folder.path(), AnnouncementKind::Run);
        let text = found.iter().map(AgentSession::to_string).collect::<Vec<_>>();
        let agent = holder.0.id();
        assert_eq!(
            text,
            [format!("user nobody (agent {agent} here, for process 1 of root@desk) since 2026-01-01T00:00:00Z")]
        );
        drop(holder);
        assert_eq!(read_announcements(&root, folder.path(), AnnouncementKind::Run), [], "it is unlocked");
        // Locked by a living process, but its own has ended.
        let _other = Holder::lock(&path);
        assert_eq!(read_announcements(&root, folder.path(), AnnouncementKind::Run), []);
    }

    #[test]
    fn nobody_else_can_lock_an_announcement_before_its_agent_does() {
        if !rustix::process::geteuid().is_root() {
            wb_test_skip::skip!("another user's processes need root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        // The other user tries to lock whatever appears, as fast as it can.
        let script = "cd \"$1\"; while :; do for file in weighbridge-*; do flock -n \"$file\" sleep 1; done; done";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(folder.path()).uid(OTHER).gid(OTHER).process_group(0);
        let mut attack = command.stderr(std::process::Stdio::null()).spawn().unwrap();
        let controller = Controller { user: "anna@desk".to_owned(), pid: 7 };
        let owner = Owner::current(&SysRoot::real());
        for _ in 0..1000 {
            let announced = Announcement::new(folder.path(), owner, AnnouncementKind::Run, controller.clone()).unwrap();
            assert_eq!(fs::metadata(&announced.path).unwrap().permissions().mode() & 0o777, 0o644);
        }
        let group = rustix::process::Pid::from_child(&attack);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        attack.wait().unwrap();
    }
}
