//! Announcements of agents to the agents of other controllers on this machine: active runs and exclusive use. Each is a
//! file that the agent keeps locked.
//!
//! The files are in a folder that all users can write to, whatever their TMPDIR is. A locked file is in force,
//! whichever process namespace its agent is in; an unlocked one was left by a killed agent.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use wb_sys::FileLock;
use wb_sys::file_lock::is_locked;
use wb_sys::process::Owner;

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

/// Kind of an announcement.
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
    /// Its content.
    pub(super) holder: AgentSession,
    path: PathBuf,
    _lock: FileLock,
}

impl Announcement {
    /// Creates an announcement for a controller in a folder.
    pub(super) fn new(folder: &Path, owner: Owner, kind: AnnouncementKind, controller: Controller) -> io::Result<Self> {
        let [path, unfinished] = [kind.suffix(), "-new"].map(|suffix| folder.join(format!("{owner}{suffix}")));
        let open = || OpenOptions::new().write(true).create_new(true).mode(0o644).open(&unfinished);
        let lock = FileLock::try_acquire(&unfinished, open)?;
        let holder = AgentSession::new(controller);
        // Renamed into place once it is locked and complete: readers briefly lock the files that they find.
        let text = serde_json::to_vec(&holder).map_err(io::Error::from);
        let result = text.and_then(|text| lock.file().write_all(&text)).and_then(|()| fs::rename(&unfinished, &path));
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

/// Lists the active runs of all users on this machine.
pub fn announced_runs() -> Vec<AgentSession> {
    read_announcements(&folder(), AnnouncementKind::Run)
}

/// Lists the announcements of a kind in a folder, except those of one controller.
pub(super) fn read_others(folder: &Path, kind: AnnouncementKind, excluded: &Controller) -> Vec<AgentSession> {
    let mut holders = read_announcements(folder, kind);
    holders.retain(|holder| holder.controller != *excluded);
    holders
}

/// Lists the announcements of a kind in a folder.
pub(super) fn read_announcements(folder: &Path, kind: AnnouncementKind) -> Vec<AgentSession> {
    let is_of_kind = |name: &str| name.strip_suffix(kind.suffix()).is_some_and(|owner| Owner::parse(owner).is_some());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_of_kind));
    let mut holders: Vec<AgentSession> = files.filter_map(|entry| read(&entry.path())).collect();
    holders.sort();
    holders
}

/// Announces exclusive use of the machine by a controller; fails with the present holder, if there is one.
///
/// Agents of one user are serialised by a lock. Agents of different users that start at the same moment may find each
/// other and both fail.
pub(super) fn announce_exclusive(
    folder: &Path,
    owner: Owner,
    controller: &Controller,
) -> Result<Option<Announcement>, AgentSession> {
    // If the announcement cannot be written, only the lock of this user protects the machine.
    let announcement = Announcement::new(folder, owner, AnnouncementKind::Exclusive, controller.clone()).ok();
    match read_others(folder, AnnouncementKind::Exclusive, controller).into_iter().next() {
        Some(holder) => Err(holder),
        None => Ok(announcement),
    }
}

/// Reads an announcement; none if it is no longer in force or not written by an agent.
fn read(path: &Path) -> Option<AgentSession> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    if !is_locked(&file) || !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(MAX_ANNOUNCEMENT_SIZE).read_to_end(&mut text).ok()?;
    let mut holder: AgentSession = serde_json::from_slice(&text).ok()?;
    // Any user can write these files, and the text is shown on a terminal.
    holder.controller.user.retain(|letter| !letter.is_control());
    Some(holder)
}

#[cfg(test)]
mod tests {
    use wb_sys::SysRoot;

    use super::*;

    #[test]
    fn announced_runs_of_other_controllers_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, owner) = (folder.path(), Owner::current(&SysRoot::real()));
        let controller = |user: &str| Controller { user: user.to_owned(), pid: 7 };
        let (anna, bert) = (controller("anna@desk"), controller("bert@lap"));
        assert_eq!(read_others(path, AnnouncementKind::Run, &bert), []);

        let announcement =
            Announcement::new(path, owner, AnnouncementKind::Run, controller("an\x1b[31mna@desk")).unwrap();
        let holders = read_others(path, AnnouncementKind::Run, &bert);
        assert_eq!(holders.len(), 1);
        assert_eq!((holders[0].controller.user.as_str(), holders[0].agent), ("an[31mna@desk", std::process::id()));
        drop(announcement);
        assert_eq!(fs::read_dir(path).unwrap().count(), 0);

        // Several agents of one controller are one run.
        let announcement = Announcement::new(path, owner, AnnouncementKind::Run, anna.clone()).unwrap();
        assert_eq!(read_others(path, AnnouncementKind::Run, &anna), []);
        assert_eq!(read_announcements(path, AnnouncementKind::Run), std::slice::from_ref(&announcement.holder));
        // The file of a killed agent is not locked.
        let stale =
            path.join(owner.to_string().replace("weighbridge-0", "weighbridge-1") + AnnouncementKind::Run.suffix());
        fs::copy(&announcement.path, &stale).unwrap();
        fs::write(path.join("weighbridge-notes"), "").unwrap();
        assert_eq!(read_others(path, AnnouncementKind::Run, &bert).len(), 1);
        assert_eq!(read_others(path, AnnouncementKind::Exclusive, &bert), []);
    }

    #[test]
    fn exclusive_use_is_refused_with_the_holder_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let owner = Owner::current(&SysRoot::real());
        let controller = |user: &str| Controller { user: user.to_owned(), pid: 7 };
        let take = |user: &str| announce_exclusive(folder.path(), owner, &controller(user));
        let first = take("anna@desk").unwrap();
        assert!(first.is_some());
        // The file name contains the owning process, which is the same for both here: rename one.
        fs::rename(&first.as_ref().unwrap().path, folder.path().join(format!("{owner}9-exclusive"))).unwrap();
        assert_eq!(take("bert@lap").unwrap_err().controller, controller("anna@desk"));
        drop(first);
        assert!(take("bert@lap").unwrap().is_some());
    }
}
