//! Control groups that keep threads apart.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::io::Errno;

use crate::{SysError, SysRoot};

use super::{Step, StepError};

/// How often threads are listed again, since some were born meanwhile.
const MAX_ROUNDS: usize = 1000;

/// A bit among a thread's flags: it is the kernel's own (PF_KTHREAD of the kernel's sched.h).
const PF_KTHREAD: u64 = 0x0020_0000;

/// A line for each file of a group; none where there is no such group.
pub(super) fn state(root: &SysRoot, path: &str, files: &[String]) -> Result<Option<Vec<u8>>, StepError> {
    let mut lines = String::new();
    for file in files {
        match root.text(format!("{path}/{file}")) {
            Err(SysError::Missing { .. }) => return Ok(None),
            text => lines += &(text? + "\n"),
        }
    }
    Ok(Some(lines.into_bytes()))
}

/// Makes a group and writes its files.
pub(super) fn make(root: &SysRoot, path: &str, files: &[String], lines: &str) -> io::Result<()> {
    let full = root.path(path).map_err(io::Error::other)?;
    match fs::create_dir(&full) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => other?,
    }
    files.iter().zip(lines.lines()).try_for_each(|(file, line)| fs::write(full.join(file), line))
}

/// Takes a group away, with those below it; whatever is in them goes to the group above.
pub(super) fn remove(full: &Path) -> io::Result<()> {
    let above = full.parent().unwrap_or(full);
    for entry in fs::read_dir(full)?.flatten() {
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    for _ in 0..MAX_ROUNDS {
        move_members(full, above)?;
        match fs::remove_dir(full) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
            other => return other,
        }
    }
    Err(Errno::BUSY.into())
}

/// Moves every member of a group to another.
fn move_members(from: &Path, to: &Path) -> io::Result<()> {
    for member in numbers(&fs::read_to_string(from.join("cgroup.procs"))?) {
        move_to(member, &to.join("cgroup.procs"))?;
    }
    Ok(())
}

/// Whether there is any thread in a group.
pub(super) fn moved_state(root: &SysRoot, to: &str) -> Result<Option<Vec<u8>>, StepError> {
    match root.text(format!("{to}/tasks")) {
        Err(SysError::Missing { .. }) => Ok(None),
        text => Ok((!text?.is_empty()).then(|| Step::MOVED.as_bytes().to_vec())),
    }
}

/// Moves every thread that is not the kernel's own from one group of version 1 to another.
pub(super) fn move_threads(root: &SysRoot, from: &Path, to: &Path) -> io::Result<()> {
    for _ in 0..MAX_ROUNDS {
        let threads = numbers(&fs::read_to_string(from.join("tasks"))?);
        let mut ours = threads.into_iter().filter(|thread| is_user_thread(root, *thread)).peekable();
        if ours.peek().is_none() {
            return Ok(());
        }
        for thread in ours {
            move_to(thread, &to.join("tasks"))?;
        }
    }
    Err(io::Error::other("new threads are born faster than they can be moved"))
}

/// Puts one thread into a group, unless it has ended.
fn move_to(thread: u32, file: &Path) -> io::Result<()> {
    match fs::write(file, thread.to_string()) {
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(()),
        other => other,
    }
}

fn numbers(text: &str) -> Vec<u32> {
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Whether a thread is alive and not the kernel's own: the ninth field of its line (proc_pid_stat(5)) says so.
fn is_user_thread(root: &SysRoot, thread: u32) -> bool {
    let stat = root.text(format!("/proc/{thread}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, tail)| tail).split_whitespace().collect::<Vec<_>>();
    let flags = fields.get(6).and_then(|flags| flags.parse::<u64>().ok());
    let is_zombie = matches!(fields.first(), Some(&("Z" | "X")));
    !is_zombie && flags.is_some_and(|flags| flags & PF_KTHREAD == 0)
}
