//! Control groups that isolate threads.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::io::Errno;

use crate::process::tree;
use crate::{SysError, SysRoot};

use super::{ManagedResource, ResourceError};

/// Maximum number of passes over the threads, since new ones may be created meanwhile.
const MAX_ROUNDS: usize = 1000;

/// The contents of a group's files, one per line; None where the group does not exist.
pub(super) fn state(root: &SysRoot, path: &str, files: &[String]) -> Result<Option<Vec<u8>>, ResourceError> {
    if !root.exists(path) {
        return Ok(None);
    }
    let mut lines = String::new();
    for file in files {
        match root.text(format!("{path}/{file}")) {
            Err(SysError::Missing { .. }) => return Ok(None),
            text => lines += &(text? + "\n"),
        }
    }
    Ok(Some(lines.into_bytes()))
}

/// Creates a group and writes its files.
pub(super) fn make(root: &SysRoot, path: &str, files: &[String], lines: &str) -> io::Result<()> {
    let full = root.path(path).map_err(io::Error::other)?;
    match fs::create_dir(&full) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => other?,
    }
    files.iter().zip(lines.lines()).try_for_each(|(file, line)| fs::write(full.join(file), line))
}

/// Removes a group and its descendants; their members move to the parent group.
pub(super) fn remove(full: &Path) -> io::Result<()> {
    let parent = full.parent().unwrap_or(full);
    for entry in fs::read_dir(full)?.flatten() {
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    for _ in 0..MAX_ROUNDS {
        move_members(full, parent)?;
        match fs::remove_dir(full) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
            other => return other,
        }
    }
    Err(Errno::BUSY.into())
}

/// Moves all members of a group to another.
fn move_members(from: &Path, to: &Path) -> io::Result<()> {
    for member in numbers(&fs::read_to_string(from.join("cgroup.procs"))?) {
        move_to(member, &to.join("cgroup.procs"))?;
    }
    Ok(())
}

/// The state [`ManagedResource::MOVED`] where a group has any thread.
pub(super) fn moved_state(root: &SysRoot, to: &str) -> Result<Option<Vec<u8>>, ResourceError> {
    match root.text(format!("{to}/tasks")) {
        Err(SysError::Missing { .. }) => Ok(None),
        text => Ok((!text?.is_empty()).then(|| ManagedResource::MOVED.as_bytes().to_vec())),
    }
}

/// Moves all threads except kernel threads from one version 1 group to another.
pub(super) fn move_threads(root: &SysRoot, from: &Path, to: &Path) -> io::Result<()> {
    for _ in 0..MAX_ROUNDS {
        let threads = numbers(&fs::read_to_string(from.join("tasks"))?);
        let mut movable = threads.into_iter().filter(|thread| is_user_thread(root, *thread)).peekable();
        if movable.peek().is_none() {
            return Ok(());
        }
        for thread in movable {
            move_to(thread, &to.join("tasks"))?;
        }
    }
    Err(io::Error::other("new threads are created faster than they can be moved"))
}

/// Moves a thread into a group, unless it has ended.
fn move_to(thread: u32, file: &Path) -> io::Result<()> {
    match fs::write(file, thread.to_string()) {
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(()),
        other => other,
    }
}

fn numbers(text: &str) -> Vec<u32> {
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Whether a thread is alive and not a kernel thread.
fn is_user_thread(root: &SysRoot, thread: u32) -> bool {
    tree::read_stat(root, thread).is_some_and(|entry| !entry.is_zombie() && !entry.is_kernel_thread)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use crate::fake_root::FakeRoot;

    use super::*;

    #[test]
    fn a_group_without_files_that_are_set_exists_once_it_is_made() {
        let root = FakeRoot::new().file("/cgroup/cgroup.procs", "");
        let root = root.root();
        assert_eq!(state(&root, "/cgroup/workload", &[]).unwrap(), None);
        make(&root, "/cgroup/workload", &[], "").unwrap();
        assert_eq!(state(&root, "/cgroup/workload", &[]).unwrap(), Some(Vec::new()));
    }
}
