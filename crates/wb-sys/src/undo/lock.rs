//! Who may change a machine: one at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

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

/// Takes the lock; who has it, if somebody does. It goes with the file that is returned, and with the process.
pub(super) fn take(path: &Path, what: &str) -> io::Result<Result<File, Option<Holder>>> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        // The holder before us may have removed it meanwhile: then it locks nothing.
        Ok(()) if !is_at(&file, path)? => take(path, what),
        Ok(()) => {
            file.set_len(0)?;
            file.write_all(format!("{} {what}\n", std::process::id()).as_bytes())?;
            Ok(Ok(file))
        }
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut text = String::new();
            file.rewind()?;
            file.read_to_string(&mut text)?;
            let holder = text.trim().split_once(' ');
            let holder = holder.and_then(|(pid, what)| Some(Holder { pid: pid.parse().ok()?, what: what.to_owned() }));
            Ok(Err(holder))
        }
        Err(error) => Err(error.into()),
    }
}
