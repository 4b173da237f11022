//! Who may change a machine: one at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// How long what a holder has started may outlive it.
const LINGER: Duration = Duration::from_secs(10);
/// How long a child of ours may take until it is its program and has nothing of ours any more.
const BETWEEN: Duration = Duration::from_secs(1);

/// Who holds the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// What it does: `tune apply quiet`.
    pub what: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`weighbridge {}` (process {})", self.what, self.pid)
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Holder {
    fn lives(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
    }
}

/// Takes the lock; who has it, if somebody does. It goes with the file that is returned, with the process, and with the
/// commands that were started with it: where only those are left, their end is waited for.
pub(super) fn take(path: &Path, what: &str) -> io::Result<Result<File, Option<Holder>>> {
    let start = Instant::now();
    loop {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // The holder before us may have removed it meanwhile: then it locks nothing.
            Ok(()) if !is_at(&file, path)? => {}
            Ok(()) => {
                let signed = file
                    .set_len(0)
                    .and_then(|()| file.write_all(format!("{} {what}\n", std::process::id()).as_bytes()));
                return match signed {
                    Ok(()) => Ok(Ok(file)),
                    Err(error) => std::fs::remove_file(path).and(Err(error)),
                };
            }
            Err(Errno::WOULDBLOCK) => {
                let holder = holder(&mut file)?;
                let is_over = match &holder {
                    // We may have let it go, and a child that has not become its program yet has it still.
                    Some(holder) if holder.pid == std::process::id() => start.elapsed() > BETWEEN,
                    Some(holder) if holder.lives() => true,
                    _ => start.elapsed() > LINGER,
                };
                if is_over {
                    return Ok(Err(holder));
                }
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Who has signed the lock.
fn holder(file: &mut File) -> io::Result<Option<Holder>> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    let holder = text.trim().split_once(' ');
    Ok(holder.and_then(|(pid, what)| Some(Holder { pid: pid.parse().ok()?, what: what.to_owned() })))
}
