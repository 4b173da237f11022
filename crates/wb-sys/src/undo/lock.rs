//! Who may change a machine: one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Signal, getpgrp};
use serde::{Deserialize, Serialize};

use crate::SysRoot;
use crate::process::{Owner, ProcessStat, tree};

/// How long the commands of a holder that has ended may take to end too.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a child of ours may take until it is its program and has nothing of ours any more.
const EXEC_TIMEOUT: Duration = Duration::from_secs(1);

/// The process that holds the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// Its process.
    pub pid: u32,
    /// What it does: `tune apply quiet`.
    pub what: String,
    /// Since when, by this machine's clock.
    pub since: jiff::Timestamp,
    /// Whether it has ended, and only a command that it started still runs.
    pub has_ended: bool,
}

impl std::fmt::Display for LockHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pid, what, since, has_ended } = self;
        write!(f, "`weighbridge {what}` (process {pid}, since {since:.0})")?;
        if *has_ended { f.write_str(", which has ended, while a command that it started has not") } else { Ok(()) }
    }
}

/// What a holder writes into the lock's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LockRecord {
    /// The process: its id, its start and the namespace of its id, as [`Owner`] writes them.
    owner: String,
    /// Its process group, in which none of its commands is.
    group: u32,
    /// What it does.
    what: String,
    /// Since when.
    since: jiff::Timestamp,
}

impl LockRecord {
    fn new(what: &str) -> Self {
        let group = getpgrp().as_raw_nonzero().get().cast_unsigned();
        Self {
            owner: Owner::current(&SysRoot::real()).to_string(),
            group,
            what: what.to_owned(),
            since: jiff::Timestamp::now(),
        }
    }

    /// Of a lock's file; none where nothing whole is in it yet.
    fn read(file: &mut File) -> io::Result<Option<Self>> {
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text).ok())
    }

    fn owner(&self) -> Option<Owner> {
        Owner::parse(&self.owner)
    }

    /// Whether its process has ended; a zombie has.
    fn has_ended(&self) -> bool {
        self.owner().is_some_and(|owner| owner.is_gone(&SysRoot::real()))
    }

    fn holder(&self) -> Option<LockHolder> {
        let Self { what, since, .. } = self;
        let pid = self.owner()?.pid();
        Some(LockHolder { pid, what: what.clone(), since: *since, has_ended: self.has_ended() })
    }
}

fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(there) => Ok(is_same(&there, &file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Who has the lock, or had it last.
pub(super) fn holder(path: &Path) -> Option<LockHolder> {
    LockRecord::read(&mut File::open(path).ok()?).ok()??.holder()
}

/// Writes into the lock, which is ours, what it is taken for.
pub(super) fn write_record(file: &mut File, what: &str) -> io::Result<()> {
    let line = serde_json::to_string(&LockRecord::new(what)).map_err(io::Error::from)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Takes the lock; who has it, if somebody does. It goes with the file that is returned, with the process, and with the
/// commands that were started with it: where only those are left, they are ended first.
pub(super) fn acquire(path: &Path, what: &str) -> io::Result<Result<File, Option<LockHolder>>> {
    let (ours, start) = (LockRecord::new(what), Instant::now());
    loop {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // The holder before us may have removed it meanwhile: then it locks nothing.
            Ok(()) if !is_same_file(&file, path)? => {}
            Ok(()) => {
                return match write_record(&mut file, what) {
                    Ok(()) => Ok(Ok(file)),
                    Err(error) => fs::remove_file(path).and(Err(error)),
                };
            }
            Err(Errno::WOULDBLOCK) => {
                let theirs = LockRecord::read(&mut file)?;
                let patience = match &theirs {
                    // We may have let it go, and a child that has not become its program yet has it still.
                    Some(theirs) if theirs.owner == ours.owner => EXEC_TIMEOUT,
                    Some(theirs) if !theirs.has_ended() => Duration::ZERO,
                    Some(theirs) => {
                        kill_commands(&mut file, theirs)?;
                        ORPHAN_TIMEOUT
                    }
                    None => ORPHAN_TIMEOUT,
                };
                if start.elapsed() >= patience {
                    return Ok(Err(theirs.and_then(|theirs| theirs.holder())));
                }
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Ends the commands of a holder that has ended, each with its process group and all that descends from it.
fn kill_commands(file: &mut File, dead: &LockRecord) -> io::Result<()> {
    let root = SysRoot::real();
    let (mut groups, mut stopped) = (BTreeSet::new(), BTreeMap::new());
    // All are stopped before any is killed: a shell whose child is killed first would go on with its next command. One that
    // is stopped starts no more, so that what was started meanwhile is found in the next round.
    loop {
        let all = tree::all(&root);
        let commands = commands(&all, &file.metadata()?);
        groups.extend(commands.iter().map(|command| command.group));
        // One that has not left it yet is no reason to end whatever else is in it.
        groups.remove(&dead.group);
        let of_group = all.iter().filter(|entry| groups.contains(&entry.group));
        let roots = commands.iter().copied().chain(of_group).map(|entry| entry.pid).collect();
        // Somebody may have taken the lock meanwhile: then these are the commands of a process that lives.
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

/// The processes that have the lock as their standard input.
fn commands<'a>(all: &'a [ProcessStat], lock: &fs::Metadata) -> Vec<&'a ProcessStat> {
    let has_it = |entry: &&ProcessStat| {
        fs::metadata(format!("/proc/{}/fd/0", entry.pid)).is_ok_and(|input| is_same(&input, lock))
    };
    all.iter().filter(has_it).collect()
}
