//! The lock of the undo log, which allows one process at a time to change a machine.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpgrp};
use serde::{Deserialize, Serialize};

use crate::SysRoot;
use crate::file_lock::{LockError, is_same_file, open_private, try_lock};
use crate::process::{Owner, ProcessStat, tree};

/// How long to wait for the remaining commands of a holder that has ended.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for a forked child to execute its program, which closes its inherited descriptors.
const EXEC_TIMEOUT: Duration = Duration::from_secs(1);

/// The process that holds the lock of the undo log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    pub pid: u32,
    /// Its subcommand: `tune apply quiet`.
    pub subcommand: String,
    /// When it acquired the lock, by this machine's clock.
    pub since: jiff::Timestamp,
    /// Whether it has ended while a command that it started still runs.
    pub has_ended: bool,
}

impl std::fmt::Display for LockHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pid, subcommand: what, since, has_ended } = self;
        write!(f, "`weighbridge {what}` (process {pid}, since {since:.0})")?;
        if *has_ended { f.write_str(", which has ended but left a running command") } else { Ok(()) }
    }
}

/// The content of the lock file, written by the holder, and of its public copy: the lock file itself is private.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LockRecord {
    /// The process, as formatted by [`Owner`]: its id, start time and PID namespace.
    owner: String,
    /// Its process group, to which none of its commands belongs.
    group: u32,
    /// Its subcommand.
    what: String,
    /// When it acquired the lock.
    since: jiff::Timestamp,
}

impl LockRecord {
    fn new(subcommand: &str) -> Self {
        let group = getpgrp().as_raw_nonzero().get().cast_unsigned();
        Self {
            owner: Owner::current(&SysRoot::real()).to_string(),
            group,
            what: subcommand.to_owned(),
            since: jiff::Timestamp::now(),
        }
    }

    /// Reads a lock file; None where it has no complete record yet.
    fn read(mut file: &File) -> io::Result<Option<Self>> {
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text).ok())
    }

    fn owner(&self) -> Option<Owner> {
        Owner::parse(&self.owner)
    }

    /// Whether the process has ended; a zombie counts as ended.
    fn has_ended(&self) -> bool {
        self.owner().is_some_and(|owner| owner.is_gone(&SysRoot::real()))
    }

    fn holder(&self) -> Option<LockHolder> {
        let Self { what, since, .. } = self;
        let pid = self.owner()?.pid();
        Some(LockHolder { pid, subcommand: what.clone(), since: *since, has_ended: self.has_ended() })
    }
}

/// The current or last holder of the lock at `path`, as all users can read it.
pub(super) fn holder(path: &Path) -> Option<LockHolder> {
    LockRecord::read(&File::open(public_copy(path)).ok()?).ok()??.holder()
}

/// Writes the record of this process into the lock file at `path`, and into its public copy.
pub(super) fn write_record(mut file: &File, path: &Path, subcommand: &str) -> io::Result<()> {
    let line = serde_json::to_string(&LockRecord::new(subcommand)).map_err(io::Error::from)? + "\n";
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(line.as_bytes())?;
    let mut copy = File::create(public_copy(path))?;
    copy.set_permissions(Permissions::from_mode(PUBLIC_MODE))?;
    copy.write_all(line.as_bytes())
}

/// Removes the lock file at `path` and its public copy.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(public_copy(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::remove_file(path),
    }
}

/// All users need to know by whom a machine is changed.
const PUBLIC_MODE: u32 = 0o644;

/// The file with the record of the holder that all users can read.
fn public_copy(lock: &Path) -> PathBuf {
    lock.with_file_name("holder")
}

/// Acquires the lock, or returns its holder. The lock is inherited by the commands that are started with its file.
/// Where only such commands of an ended holder are left, they are killed first.
pub(super) fn acquire(path: &Path, subcommand: &str) -> io::Result<Result<File, Option<LockHolder>>> {
    let (own, start) = (LockRecord::new(subcommand), Instant::now());
    loop {
        match try_lock(path, || open_private(path)) {
            Ok(lock) => {
                return match write_record(&lock, path, subcommand) {
                    Ok(()) => Ok(Ok(lock)),
                    Err(error) => remove(path).and(Err(error)),
                };
            }
            Err(LockError::Held(file)) => {
                let current = LockRecord::read(&file)?;
                let timeout = match &current {
                    // This process may have released it while a forked child that has not called execve still has it.
                    Some(current) if current.owner == own.owner => EXEC_TIMEOUT,
                    Some(current) if !current.has_ended() => Duration::ZERO,
                    Some(current) => {
                        kill_commands(&file, current)?;
                        ORPHAN_TIMEOUT
                    }
                    None => ORPHAN_TIMEOUT,
                };
                if start.elapsed() >= timeout {
                    return Ok(Err(current.and_then(|current| current.holder())));
                }
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills the commands of a holder that has ended, each with its process group and descendants.
fn kill_commands(file: &File, dead: &LockRecord) -> io::Result<()> {
    let list = || {
        let all = tree::all(&SysRoot::real());
        let lock = file.metadata()?;
        let mut commands = BTreeSet::from_iter(all.iter().map(|entry| entry.pid).filter(|pid| is_command(*pid, &lock)));
        // Another process may have acquired the lock meanwhile: these are then the commands of a live process.
        if LockRecord::read(file)?.as_ref() != Some(dead) {
            commands.clear();
        }
        Ok((all, commands))
    };
    kill_with_relatives(dead.group, list, |entry, signal| _ = tree::signal(entry, signal))
}

/// Whether a process has the lock file as its standard input.
fn is_command(pid: u32, lock: &fs::Metadata) -> bool {
    fs::metadata(format!("/proc/{pid}/fd/0")).is_ok_and(|input| is_same_file(&input, lock))
}

/// Kills processes with their groups and descendants. `list` returns all processes of the machine and the ids of those
/// that are to be killed; processes of `spared_group` are not killed for their group alone: it is that of a dead
/// holder, which a command may not have left yet.
fn kill_with_relatives(
    spared_group: u32,
    list: impl Fn() -> io::Result<(Vec<ProcessStat>, BTreeSet<u32>)>,
    mut send: impl FnMut(&ProcessStat, Signal),
) -> io::Result<()> {
    let (mut groups, mut known, mut stopped) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    loop {
        let (all, mut roots) = list()?;
        groups.extend(all.iter().filter(|entry| roots.contains(&entry.pid)).map(|entry| entry.group));
        groups.remove(&spared_group);
        roots.extend(all.iter().filter(|entry| groups.contains(&entry.group)).map(|entry| entry.pid));
        let found = tree::descendants(&all, &roots);
        // A known process may have changed its group before it stopped.
        groups.extend(found.iter().map(|entry| entry.group));
        let new: Vec<_> = found.into_iter().filter(|entry| known.insert((entry.pid, entry.started))).collect();
        // All are stopped before any is killed: a shell whose child is killed first would continue with its next command.
        // The signal to stop does not interrupt a fork, which the one to kill does. So a child can appear until its parent
        // was killed, when only its group still relates it.
        if new.is_empty() {
            if stopped.is_empty() {
                return Ok(());
            }
            for entry in stopped.drain(..) {
                send(&entry, Signal::KILL);
            }
        }
        for entry in &new {
            send(entry, Signal::STOP);
        }
        stopped.extend(new);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    fn process(pid: u32, parent: u32, group: u32) -> ProcessStat {
        let line = format!("{pid} (p) S {parent} {group} 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {pid}");
        tree::parse_stat(&line).unwrap()
    }

    // A command that was told to stop while it forked got another child, which was left running.
    #[test]
    fn children_that_appear_until_their_parent_is_killed_are_killed() {
        const HOLDERS_GROUP: u32 = 5;
        let unrelated = [process(1, 0, 1), process(6, 1, HOLDERS_GROUP), process(7, 6, 7)];
        let command = [process(10, 1, 10), process(11, 10, 10), process(12, 11, 12)];
        let all = RefCell::new([&unrelated[..], &command].concat());
        let signals = RefCell::new(Vec::new());
        let list = || {
            let all = all.borrow().clone();
            let roots = all.iter().map(|entry| entry.pid).filter(|pid| *pid == 10).collect();
            Ok((all, roots))
        };
        let send = |entry: &ProcessStat, signal| {
            signals.borrow_mut().push((entry.pid, signal));
            let mut all = all.borrow_mut();
            // It changes its group before it stops.
            if (entry.pid, signal) == (12, Signal::STOP) {
                all.iter_mut().find(|other| other.pid == 12).unwrap().group = 13;
            }
            if signal == Signal::KILL {
                all.retain(|other| other.pid != entry.pid);
                // Forked meanwhile, in the group of its parent; init inherits them.
                match entry.pid {
                    10 => all.push(process(20, 1, 10)),
                    12 => all.extend([process(21, 1, 13), process(22, 21, 22)]),
                    _ => {}
                }
            }
        };
        kill_with_relatives(HOLDERS_GROUP, list, send).unwrap();
        assert_eq!(*all.borrow(), unrelated);
        let waves: Vec<_> =
            signals.into_inner().chunks(3).map(|wave| BTreeMap::from_iter(wave.iter().copied())).collect();
        let wave = |pids: [u32; 3], signal| BTreeMap::from(pids.map(|pid| (pid, signal)));
        let (first, second) = ([10, 11, 12], [20, 21, 22]);
        let expected = [(first, Signal::STOP), (first, Signal::KILL), (second, Signal::STOP), (second, Signal::KILL)];
        assert_eq!(waves, expected.map(|(pids, signal)| wave(pids, signal)));
    }

    // The group of the dead holder may be that of a user's whole pipeline.
    #[test]
    fn a_command_in_the_group_of_its_holder_is_killed_alone() {
        let all = RefCell::new(vec![process(6, 1, 5), process(7, 1, 5), process(8, 7, 5)]);
        let list = || Ok((all.borrow().clone(), BTreeSet::from([7])));
        let send = |entry: &ProcessStat, signal| {
            if signal == Signal::KILL {
                all.borrow_mut().retain(|other| other.pid != entry.pid);
            }
        };
        kill_with_relatives(5, list, send).unwrap();
        assert_eq!(*all.borrow(), [process(6, 1, 5)]);
    }
}
