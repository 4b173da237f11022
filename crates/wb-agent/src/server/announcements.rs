//! What agents do on this machine that agents of other controllers have to find: measure, or have the machine to
//! themselves. Each announces it in a file that it holds locked.
//!
//! The files lie in a folder that all users can write to, whatever their TMPDIR is. A locked one is in force, in whichever
//! process namespace; one that is not was left by an agent that was killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use wb_sys::process::Owner;

use crate::session::{AgentSession, Controller};

/// Names another folder for announcements; for machines on which several systems share the usual one.
const FOLDER_VARIABLE: &str = "WEIGHBRIDGE_LOCKS";
/// Folders that every user can write to, where distributions have them: in the order in which they are preferred.
const SHARED_FOLDERS: [&str; 3] = ["/run/lock", "/tmp", "/dev/shm"];
/// Writable for all, and each removes its own files only.
const STICKY_MODE: u32 = 0o1777;
/// More than any announcement takes, in bytes.
const MAX_ANNOUNCEMENT_SIZE: u64 = 4096;

/// What is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnnouncementKind {
    /// A run measures, and others may do so too.
    Run,
    /// The machine serves one controller alone.
    Exclusive,
}

impl AnnouncementKind {
    /// How the names of its files end.
    fn suffix(self) -> &'static str {
        match self {
            Self::Run => "-run",
            Self::Exclusive => "-exclusive",
        }
    }
}

/// The folder in which agents of all users announce what they do.
pub(super) fn folder() -> PathBuf {
    let is_shared = |folder: &str| {
        fs::metadata(folder)
            .is_ok_and(|found| found.is_dir() && found.permissions().mode() & STICKY_MODE == STICKY_MODE)
    };
    let named = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let shared = || SHARED_FOLDERS.into_iter().find(|folder| is_shared(folder)).map(PathBuf::from);
    named.or_else(shared).unwrap_or_else(std::env::temp_dir)
}

/// An announcement; withdrawn when this is dropped.
#[derive(Debug)]
pub(super) struct Announcement {
    /// What it says.
    pub(super) holder: AgentSession,
    path: PathBuf,
    _lock: File,
}

impl Announcement {
    /// Announces in a folder what is done for this controller.
    pub(super) fn new(folder: &Path, owner: Owner, kind: AnnouncementKind, controller: Controller) -> io::Result<Self> {
        let [path, unfinished] = [kind.suffix(), "-new"].map(|suffix| folder.join(format!("{owner}{suffix}")));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&unfinished)?;
        let holder = AgentSession::new(controller);
        // It gets its name when it is locked and whole: others lock for a moment what they find.
        let announced = flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(&serde_json::to_vec(&holder)?))
            .and_then(|()| fs::rename(&unfinished, &path));
        if let Err(error) = announced {
            return fs::remove_file(&unfinished).and(Err(error));
        }
        Ok(Self { holder, path, _lock: file })
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // One that cannot be removed is not locked any more, and says nothing.
        let _ = fs::remove_file(&self.path);
    }
}

/// The runs of all users that measure on this machine.
pub fn announced_runs() -> Vec<AgentSession> {
    read_announcements(&folder(), AnnouncementKind::Run)
}

/// The announcements of a kind in a folder, but for those of one controller.
pub(super) fn read_others(folder: &Path, kind: AnnouncementKind, but: &Controller) -> Vec<AgentSession> {
    let mut found = read_announcements(folder, kind);
    found.retain(|holder| holder.controller != *but);
    found
}

/// The announcements of a kind in a folder.
pub(super) fn read_announcements(folder: &Path, kind: AnnouncementKind) -> Vec<AgentSession> {
    let is_of_kind = |name: &str| name.strip_suffix(kind.suffix()).is_some_and(|owner| Owner::parse(owner).is_some());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_of_kind));
    let mut found: Vec<AgentSession> = files.filter_map(|entry| read(&entry.path())).collect();
    found.sort();
    found
}

/// Announces that the machine serves a controller alone; with whom it does already, if it does.
///
/// Agents of one user are kept apart by a lock. Of agents of several users that start at the same moment each may find
/// the other, and none serves.
pub(super) fn announce_exclusive(
    folder: &Path,
    owner: Owner,
    controller: &Controller,
) -> Result<Option<Announcement>, AgentSession> {
    // Where nothing can be announced, the lock of this user is all there is.
    let announcement = Announcement::new(folder, owner, AnnouncementKind::Exclusive, controller.clone()).ok();
    match read_others(folder, AnnouncementKind::Exclusive, controller).into_iter().next() {
        Some(holder) => Err(holder),
        None => Ok(announcement),
    }
}

/// Who announces something in a file; none where it is over, or the file is not what an agent writes.
fn read(path: &Path) -> Option<AgentSession> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let is_held = flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
    if !is_held || !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(MAX_ANNOUNCEMENT_SIZE).read_to_end(&mut text).ok()?;
    let mut holder: AgentSession = serde_json::from_slice(&text).ok()?;
    // Anybody can write there, and it is shown on a terminal.
    holder.controller.user.retain(|letter| !letter.is_control());
    Some(holder)
}

#[cfg(test)]
mod tests {
    use wb_sys::SysRoot;

    use super::*;

    #[test]
    fn runs_of_other_controllers_are_seen_while_they_are_announced() {
        let folder = tempfile::tempdir().unwrap();
        let (here, owner) = (folder.path(), Owner::current(&SysRoot::real()));
        let controller = |user: &str| Controller { user: user.to_owned(), pid: 7 };
        let (anna, bert) = (controller("anna@desk"), controller("bert@lap"));
        assert_eq!(read_others(here, AnnouncementKind::Run, &bert), []);

        let announcement =
            Announcement::new(here, owner, AnnouncementKind::Run, controller("an\x1b[31mna@desk")).unwrap();
        let found = read_others(here, AnnouncementKind::Run, &bert);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].controller.user.as_str(), found[0].agent), ("an[31mna@desk", std::process::id()));
        drop(announcement);
        assert_eq!(fs::read_dir(here).unwrap().count(), 0);

        // Several agents of one controller are one run.
        let announcement = Announcement::new(here, owner, AnnouncementKind::Run, anna.clone()).unwrap();
        assert_eq!(read_others(here, AnnouncementKind::Run, &anna), []);
        assert_eq!(read_announcements(here, AnnouncementKind::Run), std::slice::from_ref(&announcement.holder));
        // What is left of a killed agent is locked by nobody.
        let left =
            here.join(owner.to_string().replace("weighbridge-0", "weighbridge-1") + AnnouncementKind::Run.suffix());
        fs::copy(&announcement.path, &left).unwrap();
        fs::write(here.join("weighbridge-notes"), "").unwrap();
        assert_eq!(read_others(here, AnnouncementKind::Run, &bert).len(), 1);
        assert_eq!(read_others(here, AnnouncementKind::Exclusive, &bert), []);
    }

    #[test]
    fn a_machine_that_serves_one_controller_alone_names_it_to_others_until_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let owner = Owner::current(&SysRoot::real());
        let controller = |user: &str| Controller { user: user.to_owned(), pid: 7 };
        let take = |user: &str| announce_exclusive(folder.path(), owner, &controller(user));
        let first = take("anna@desk").unwrap();
        assert!(first.is_some());
        // The owner is the process, and both are of this one here.
        fs::rename(&first.as_ref().unwrap().path, folder.path().join(format!("{owner}9-exclusive"))).unwrap();
        assert_eq!(take("bert@lap").unwrap_err().controller, controller("anna@desk"));
        drop(first);
        assert!(take("bert@lap").unwrap().is_some());
    }
}
