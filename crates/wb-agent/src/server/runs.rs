//! Runs that are under way on this machine: each announces itself in a file that its agent holds locked, so that runs of
//! other controllers, which disturb each other, know of each other.
//!
//! The files lie in the folder for temporary files, which all users share. What is locked is under way, in whichever
//! process namespace; what is not was left by an agent that was killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use wb_sys::process::Owner;

use crate::terms::{Controller, Holder};

/// How the names of the files end.
const SUFFIX: &str = "-run";
/// More than any announcement takes, in bytes.
const LONGEST: u64 = 4096;

/// The announcement of a run; withdrawn when this is dropped.
#[derive(Debug)]
pub(super) struct Announcement {
    path: PathBuf,
    _lock: File,
}

impl Announcement {
    /// Announces a run of this controller in a folder.
    pub(super) fn new(folder: &Path, owner: Owner, controller: Controller) -> io::Result<Self> {
        let (path, unfinished) = (folder.join(format!("{owner}{SUFFIX}")), folder.join(format!("{owner}-new")));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&unfinished)?;
        // It gets its name when it is locked and whole: others lock for a moment what they find.
        let announced = flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(&serde_json::to_vec(&Holder::new(controller))?))
            .and_then(|()| fs::rename(&unfinished, &path));
        if let Err(error) = announced {
            return fs::remove_file(&unfinished).and(Err(error));
        }
        Ok(Self { path, _lock: file })
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // One that cannot be removed is not locked any more, and says nothing.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a file of this name announces a run.
fn is_announcement(name: &str) -> bool {
    name.strip_suffix(SUFFIX).is_some_and(|owner| Owner::of(owner).is_some())
}

/// The runs that are announced in a folder, but for those of one controller.
pub(super) fn others(folder: &Path, but: &Controller) -> Vec<Holder> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let announced = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_announcement));
    let mut found: Vec<Holder> = announced.filter_map(|entry| read(&entry.path())).collect();
    found.retain(|holder| holder.controller != *but);
    found.sort();
    found
}

/// Who announces a run in a file; none where the run is over, or the file is not what an agent writes.
fn read(path: &Path) -> Option<Holder> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let is_held = flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
    if !is_held || !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    let mut holder: Holder = serde_json::from_slice(&text).ok()?;
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
        let (here, owner) = (folder.path(), Owner::me(&SysRoot::real()));
        let controller = |user: &str| Controller { user: user.to_owned(), pid: 7 };
        let (anna, bert) = (controller("anna@desk"), controller("bert@lap"));
        assert_eq!(others(here, &bert), []);

        let announcement = Announcement::new(here, owner, controller("an\x1b[31mna@desk")).unwrap();
        let found = others(here, &bert);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].controller.user.as_str(), found[0].agent), ("an[31mna@desk", std::process::id()));
        drop(announcement);
        assert_eq!(fs::read_dir(here).unwrap().count(), 0);

        // Several agents of one controller are one run.
        let announcement = Announcement::new(here, owner, anna.clone()).unwrap();
        assert_eq!(others(here, &anna), []);
        // What is left of a killed agent is locked by nobody.
        let left = here.join(owner.to_string().replace("weighbridge-0", "weighbridge-1") + SUFFIX);
        fs::copy(&announcement.path, &left).unwrap();
        fs::write(here.join("weighbridge-notes"), "").unwrap();
        assert_eq!(others(here, &bert).len(), 1);
    }
}
