//! The lock of the undo log, which allows one process at a time to change a machine.

use std::collections::{BTreeMap, BTreeSet};
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

/// Acquires the lock, or returns its holder. The lock is inherited by the commands that are started with its file. Where
/// only such commands of an ended holder are left, they are killed first.
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
    let root = SysRoot::real();
    let (mut groups, mut stopped) = (BTreeSet::new(), BTreeMap::new());
    // All are stopped before any is killed: a shell whose child is killed first would continue with its next command. A
    // stopped process starts no more, so the next iteration finds all that were started meanwhile.
    loop {
        let all = tree::all(&root);
        let commands = commands(&all, &file.metadata()?);
        groups.extend(commands.iter().map(|command| command.group));
        // A command that has not left the holder's group yet must not cause that whole group to be killed.
        groups.remove(&dead.group);
        let in_group = all.iter().filter(|entry| groups.contains(&entry.group));
        let roots = commands.iter().copied().chain(in_group).map(|entry| entry.pid).collect();
        // Another process may have acquired the lock meanwhile: these are then the commands of a live process.
        if LockRecord::read(file)?.as_ref() != Some(dead) {
            break;
        }
        let found = tree::descendants(&all, &roots);
        let new: Vec<_> = found.into_iter().filter(|entry| !stopped.contains_key(&entry.pid)).collect();
        if new.is_empty() {
            break;
        }
        for entry in new {
            tree::signal(&entry, Signal::STOP);
            stopped.insert(entry.pid, entry);
        }
    }
    for entry in stopped.values() {
        tree::signal(entry, Signal::KILL);
    }
    Ok(())
}

/// The processes that have the lock file as their standard input.
fn commands<'a>(all: &'a [ProcessStat], lock: &fs::Metadata) -> Vec<&'a ProcessStat> {
    let has_lock = |entry: &&ProcessStat| {
        fs::metadata(format!("/proc/{}/fd/0", entry.pid)).is_ok_and(|input| is_same_file(&input, lock))
    };
    all.iter().filter(has_lock).collect()
}
