//! One controller at a time: a lock on a file, held as long as the agent lives.
//!
//! The lock is the kernel's and goes with the process, so that the file of an agent that was killed locks nothing.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use wb_sys::SysRoot;

use crate::session::{AgentSession, Controller};

/// Beside the lock where folders above were made for it: how many. They go with it, also where the agent that made them
/// was killed.
const CREATED_PARENTS: &str = "made-above";

/// Where agents of root keep what others must find.
const STATE_FOLDER: &str = "/var/lib/weighbridge";

/// The machine, held for one controller; given back when this is dropped.
#[derive(Debug)]
pub(super) struct MachineLock {
    path: PathBuf,
    lock: File,
}

impl MachineLock {
    /// Takes the machine for a controller; who has it, if somebody does and it can be told.
    pub(super) fn acquire(root: &SysRoot, controller: &Controller) -> io::Result<Result<Self, Option<AgentSession>>> {
        let path = state_folder(root)?.join("agent.lock");
        let mut file = open(&path)?;
        match file.try_lock() {
            // Its holder before us may have removed it meanwhile: then it locks nothing.
            Ok(()) if !is_same_file(&file, &path) => Self::acquire(root, controller),
            Ok(()) => {
                // Where it cannot be signed nothing of it stays.
                let mut exclusive = Self { path, lock: file };
                exclusive.lock.set_len(0)?;
                exclusive.lock.write_all(&serde_json::to_vec(&AgentSession::new(controller.clone()))?)?;
                Ok(Ok(exclusive))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = Vec::new();
                file.read_to_end(&mut text)?;
                Ok(Err(serde_json::from_slice(&text).ok()))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for MachineLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        self.path.parent().iter().for_each(|folder| remove_created_folders(folder));
    }
}

/// Removes the folder and those that were made for it; one stays where something else is in it. What fails is not
/// reported: the agent has ended, and an empty folder holds nobody up.
fn remove_created_folders(folder: &Path) {
    let made = fs::read_to_string(folder.join(CREATED_PARENTS)).ok().and_then(|count| count.trim().parse().ok());
    let is_alone =
        || fs::read_dir(folder).is_ok_and(|entries| entries.flatten().all(|it| it.file_name() == CREATED_PARENTS));
    if made.is_some() && is_alone() {
        let _ = fs::remove_file(folder.join(CREATED_PARENTS));
    }
    let _ = folder.ancestors().take(1 + made.unwrap_or(0)).try_for_each(fs::remove_dir);
}

/// The folder for state, of root or of this user.
fn state_folder(root: &SysRoot) -> io::Result<PathBuf> {
    if !root.is_real() || rustix::process::geteuid().is_root() {
        return root.path(STATE_FOLDER).map_err(io::Error::other);
    }
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
    Ok(state.ok_or_else(|| io::Error::other("neither XDG_STATE_HOME nor HOME is set"))?.join("weighbridge"))
}

/// Opens the file, made together with its folder; another agent that ends may remove both meanwhile.
fn open(path: &Path) -> io::Result<File> {
    let open = || {
        path.parent().map_or(Ok(()), create_with_parents)?;
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
    };
    (0..100)
        .map(|_| open())
        .find(|file| !matches!(file, Err(error) if error.kind() == io::ErrorKind::NotFound))
        .unwrap_or_else(open)
}

/// Makes a folder and those above it.
fn create_with_parents(folder: &Path) -> io::Result<()> {
    let made = folder.ancestors().skip(1).take_while(|above| !above.exists()).count();
    fs::create_dir_all(folder)?;
    if made > 0 { fs::write(folder.join(CREATED_PARENTS), made.to_string()) } else { Ok(()) }
}

fn is_same_file(file: &File, path: &Path) -> bool {
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    file.metadata().map(id).ok().is_some_and(|ours| fs::metadata(path).map(id).ok() == Some(ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_the_first_and_what_is_left_of_a_killed_one_locks_nothing() {
        let made = wb_sys::fake_root::FakeRoot::new();
        let root = made.root();
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
    fn folders_that_were_made_for_the_lock_go_with_it_and_no_others() {
        let made = wb_sys::fake_root::FakeRoot::new();
        let root = made.root();
        let take =
            || MachineLock::acquire(&root, &Controller { user: "anna@desk".to_owned(), pid: 7 }).unwrap().unwrap();
        let there = |path: &str| root.path(path).unwrap().exists();
        drop(take());
        assert!(!there("/var"));
        // Killed: its lock stays, and the next one removes what it had made.
        let killed = take();
        let (path, text) = (killed.path.clone(), fs::read(killed.path.with_file_name(CREATED_PARENTS)).unwrap());
        drop(killed);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path.with_file_name(CREATED_PARENTS), text).unwrap();
        drop(take());
        assert!(!there("/var"));
        let held = take();
        fs::write(path.with_file_name("another"), "").unwrap();
        drop(held);
        assert!(there("/var/lib/weighbridge/another") && there("/var/lib/weighbridge/made-above"));
        fs::remove_file(path.with_file_name("another")).unwrap();
        drop(take());
        assert!(!there("/var"));
        fs::create_dir_all(root.path("/var/lib").unwrap()).unwrap();
        drop(take());
        assert!(there("/var/lib") && !there("/var/lib/weighbridge"));
    }
}
