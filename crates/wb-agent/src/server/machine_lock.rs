//! Exclusive use of the machine by one controller: a file lock, held as long as the agent lives. Only hosts over ssh
//! are taken so. The lock is the user's; agents of other users find an announcement ([`super::announcements`]).
//!
//! The kernel releases the lock with the process, so that the file of a killed agent locks nothing.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use wb_sys::file_lock::open_private;
use wb_sys::{FileLock, LockError, SysRoot, user_folders};

use crate::protocol::{AgentSession, Controller};

/// File next to the lock with the number of parent folders created for it. They are removed with the lock, also if the
/// agent that created them was killed.
const CREATED_PARENTS: &str = "made-above";

/// State folder of agents that run as root.
const STATE_FOLDER: &str = "/var/lib/weighbridge";

/// Lock on the machine for one controller, released on drop.
#[derive(Debug)]
pub(super) struct MachineLock {
    path: PathBuf,
    lock: FileLock,
}

impl MachineLock {
    /// Locks the machine for a controller; if it is locked already, the inner error is the holder, if known.
    pub(super) fn acquire(root: &SysRoot, controller: &Controller) -> io::Result<Result<Self, Option<AgentSession>>> {
        let path = state_folder(root)?.join("agent.lock");
        match FileLock::try_acquire(&path, || open(&path)) {
            Ok(lock) => {
                // Constructed first: if the holder cannot be written, dropping it removes the file.
                let exclusive = Self { path, lock };
                let mut file = exclusive.lock.file();
                file.set_len(0)?;
                file.write_all(&serde_json::to_vec(&AgentSession::new(controller.clone()))?)?;
                Ok(Ok(exclusive))
            }
            Err(LockError::Held(mut file)) => {
                let mut text = Vec::new();
                file.read_to_end(&mut text)?;
                Ok(Err(serde_json::from_slice(&text).ok()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for MachineLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        self.path.parent().iter().for_each(|folder| remove_created_folders(folder));
    }
}

/// Removes the folder and the parents created for it, unless they contain anything else. Failures are not reported: the
/// agent is ending, and an empty folder does no harm.
fn remove_created_folders(folder: &Path) {
    let created = fs::read_to_string(folder.join(CREATED_PARENTS)).ok().and_then(|count| count.trim().parse().ok());
    let is_empty = || {
        fs::read_dir(folder).is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == CREATED_PARENTS))
    };
    if created.is_some() && is_empty() {
        let _ = fs::remove_file(folder.join(CREATED_PARENTS));
    }
    let _ = folder.ancestors().take(1 + created.unwrap_or(0)).try_for_each(fs::remove_dir);
}

/// Returns the state folder of root or of this user.
fn state_folder(root: &SysRoot) -> io::Result<PathBuf> {
    if !root.is_real() || rustix::process::geteuid().is_root() {
        return root.path(STATE_FOLDER).map_err(io::Error::other);
    }
    user_folders::state().ok_or_else(|| io::Error::other("neither XDG_STATE_HOME nor HOME is set"))
}

/// Opens the lock file, creating it and its folder; retries because an agent that exits may remove both meanwhile.
fn open(path: &Path) -> io::Result<File> {
    let open = || {
        path.parent().map_or(Ok(()), create_with_parents)?;
        open_private(path)
    };
    (0..100)
        .map(|_| open())
        .find(|file| !matches!(file, Err(error) if error.kind() == io::ErrorKind::NotFound))
        .unwrap_or_else(open)
}

/// Creates a folder and its parents, and records their number.
fn create_with_parents(folder: &Path) -> io::Result<()> {
    let created = folder.ancestors().skip(1).take_while(|above| !above.exists()).count();
    fs::create_dir_all(folder)?;
    if created > 0 { fs::write(folder.join(CREATED_PARENTS), created.to_string()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_controller_gets_the_holder_and_the_file_of_a_killed_agent_locks_nothing() {
        let fake_root = wb_sys::fake_root::FakeRoot::new();
        let root = fake_root.root();
        let controller = |user: &str| Controller { user: user.to_owned(), pid: 7 };
        let take = |user: &str| MachineLock::acquire(&root, &controller(user)).unwrap();
        let first = take("anna@desk").unwrap();
        let holder = take("bert@lap").unwrap_err().unwrap();
        assert_eq!((holder.controller, holder.agent), (controller("anna@desk"), std::process::id()));

        let (path, text) = (first.path.clone(), fs::read(&first.path).unwrap());
        drop(first);
        assert!(!path.exists());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let second = take("bert@lap").unwrap();
        assert_eq!(take("carl@lab").unwrap_err().unwrap().controller, controller("bert@lap"));
        drop(second);
    }

    #[test]
    fn only_folders_created_for_the_lock_are_removed_with_it() {
        let fake_root = wb_sys::fake_root::FakeRoot::new();
        let root = fake_root.root();
        let take =
            || MachineLock::acquire(&root, &Controller { user: "anna@desk".to_owned(), pid: 7 }).unwrap().unwrap();
        let exists = |path: &str| root.path(path).unwrap().exists();
        drop(take());
        assert!(!exists("/var"));
        // Killed: its lock file stays, and the next agent removes the folders that it had created.
        let killed = take();
        let (path, text) = (killed.path.clone(), fs::read(killed.path.with_file_name(CREATED_PARENTS)).unwrap());
        drop(killed);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path.with_file_name(CREATED_PARENTS), text).unwrap();
        drop(take());
        assert!(!exists("/var"));
        let lock = take();
        fs::write(path.with_file_name("another"), "").unwrap();
        drop(lock);
        assert!(exists("/var/lib/weighbridge/another") && exists("/var/lib/weighbridge/made-above"));
        fs::remove_file(path.with_file_name("another")).unwrap();
        drop(take());
        assert!(!exists("/var"));
        fs::create_dir_all(root.path("/var/lib").unwrap()).unwrap();
        drop(take());
        assert!(exists("/var/lib") && !exists("/var/lib/weighbridge"));
    }
}
