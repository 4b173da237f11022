//! One controller at a time: a lock on a file, held as long as the agent lives.
//!
//! The lock is the kernel's and goes with the process, so that the file of an agent that was killed locks nothing.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use wb_sys::SysRoot;

use crate::terms::{Controller, Holder};

/// Where agents of root keep what others must find.
const STATE: &str = "/var/lib/weighbridge";

/// The machine, held for one controller; given back when this is dropped.
#[derive(Debug)]
pub(super) struct Exclusive {
    path: PathBuf,
    _lock: File,
}

impl Exclusive {
    /// Takes the machine for a controller; who has it, if somebody does and it can be told.
    pub(super) fn take(root: &SysRoot, controller: &Controller) -> io::Result<Result<Self, Option<Holder>>> {
        let path = state(root)?.join("agent.lock");
        let mut file = open(&path)?;
        match file.try_lock() {
            // Its holder before us may have removed it meanwhile: then it locks nothing.
            Ok(()) if !is_at(&file, &path) => Self::take(root, controller),
            Ok(()) => {
                file.set_len(0)?;
                file.write_all(&serde_json::to_vec(&Holder::new(controller.clone()))?)?;
                Ok(Ok(Self { path, _lock: file }))
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

impl Drop for Exclusive {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // It stays where something else is in it.
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

/// The folder for state, of root or of this user.
fn state(root: &SysRoot) -> io::Result<PathBuf> {
    if !root.is_real() || rustix::process::geteuid().is_root() {
        return root.path(STATE).map_err(io::Error::other);
    }
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
    Ok(state.ok_or_else(|| io::Error::other("neither XDG_STATE_HOME nor HOME is set"))?.join("weighbridge"))
}

/// Opens the file, made together with its folder; another agent that ends may remove both meanwhile.
fn open(path: &Path) -> io::Result<File> {
    let open = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
    };
    (0..100)
        .map(|_| open())
        .find(|file| !matches!(file, Err(error) if error.kind() == io::ErrorKind::NotFound))
        .unwrap_or_else(open)
}

fn is_at(file: &File, path: &Path) -> bool {
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    file.metadata().map(id).ok().is_some_and(|ours| fs::metadata(path).map(id).ok() == Some(ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_the_first_and_what_is_left_of_a_killed_one_locks_nothing() {
        let made = wb_sys::made::MadeRoot::new();
        let root = made.root();
        let controller = |user: &str| Controller { user: user.to_owned(), pid: 7 };
        let take = |user: &str| Exclusive::take(&root, &controller(user)).unwrap();
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
}
