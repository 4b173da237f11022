//! The program that runs on workers, `weighbridge-agent`, as a file.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use wb_fleet::{Host, Program};
use wb_sys::agent_program::{self, AGENT_PROGRAM};
use wb_sys::{SysRoot, users};

use crate::error::SessionError;
use crate::program::{RUNNING_PROGRAM, current_program, hash_program};

/// Path of the program that runs on workers, this machine included. Fails if it is not installed, another user put it
/// there, it is of another build than this program, or it was replaced after this process found it: a part of the
/// samples would be measured by another program.
pub fn worker_program() -> Result<PathBuf, SessionError> {
    static FOUND: OnceLock<FoundProgram> = OnceLock::new();
    let found = match FOUND.get() {
        Some(found) => found,
        None => {
            let found = FoundProgram::find(&current_program()?)?;
            FOUND.get_or_init(|| found)
        }
    };
    found.require_unchanged()?;
    Ok(found.path.clone())
}

/// Makes [`worker_program`] refuse a program whose `--version` is not its name and this text.
pub fn require_worker_version(version: &'static str) {
    // Each program sets its only version.
    let _ = WORKER_VERSION.set(version);
}

static WORKER_VERSION: OnceLock<&str> = OnceLock::new();

struct FoundProgram {
    path: PathBuf,
    /// Device, inode, and time of the last change of its content in seconds and nanoseconds: that of its status changes
    /// with each link to it, as cargo makes them.
    identity: (u64, u64, i64, i64),
}

impl FoundProgram {
    fn find(weighbridge: &Path) -> Result<Self, SessionError> {
        let places = agent_program::places(weighbridge);
        let Some(path) = agent_program::find(weighbridge) else {
            return Err(WorkerProgramError::Missing { places }.into());
        };
        let unreadable = SessionError::file("read", &path);
        let file = path.metadata().map_err(unreadable)?;
        // Where this program is in a folder like /tmp, others can put theirs beside it.
        let owners =
            [0, rustix::process::geteuid().as_raw(), std::fs::metadata(RUNNING_PROGRAM).map_err(unreadable)?.uid()];
        if !owners.contains(&file.uid()) || file.mode() & 0o002 != 0 {
            let owner = users::name(&SysRoot::real(), file.uid());
            return Err(WorkerProgramError::Untrusted { path, owner, mode: file.mode() & 0o7777 }.into());
        }
        if let Some(expected) = WORKER_VERSION.get() {
            let output = Command::new(&path).arg("--version").output().map_err(SessionError::file("start", &path))?;
            let printed = String::from_utf8_lossy(&output.stdout);
            let version = printed.split_once(' ').map_or("", |(_, version)| version.trim()).to_owned();
            if version != *expected {
                return Err(WorkerProgramError::OtherVersion { path, version, expected }.into());
            }
        }
        Ok(Self { path, identity: identity(&file) })
    }

    fn require_unchanged(&self) -> Result<(), SessionError> {
        let now = self.path.metadata().map_err(SessionError::file("read", &self.path))?;
        if identity(&now) == self.identity {
            return Ok(());
        }
        Err(WorkerProgramError::Replaced { path: self.path.clone() }.into())
    }
}

fn identity(file: &Metadata) -> (u64, u64, i64, i64) {
    (file.dev(), file.ino(), file.mtime(), file.mtime_nsec())
}

/// SHA-256.
pub fn worker_program_hash() -> Result<String, SessionError> {
    hash_program(&worker_program()?, "agent-hash.json")
}

#[derive(Debug, thiserror::Error)]
pub enum WorkerProgramError {
    #[error("`{AGENT_PROGRAM}` is not there: it runs what is measured, on this machine and on others")]
    Missing { places: Vec<PathBuf> },
    #[error("`{}` is not started: it belongs to {owner}, with mode {mode:o}", path.display())]
    Untrusted { path: PathBuf, owner: String, mode: u32 },
    #[error("`{}` is of another build: {version} instead of {expected}", path.display())]
    OtherVersion { path: PathBuf, version: String, expected: &'static str },
    #[error("`{}` was replaced while it was in use", path.display())]
    Replaced { path: PathBuf },
}

impl WorkerProgramError {
    pub fn help(&self) -> String {
        match self {
            Self::Missing { places } => {
                let places: Vec<String> = places.iter().map(|place| format!("`{}`", place.display())).collect();
                format!("install both programs of a package together: it is expected at {}", places.join(" or "))
            }
            Self::Untrusted { .. } => {
                "install both programs of a package as one user, writable by nobody else".to_owned()
            }
            Self::OtherVersion { .. } => "install both programs of a package together".to_owned(),
            Self::Replaced { .. } => "run the command again: a resumed run goes on with the new program".to_owned(),
        }
    }
}

/// Reads the program of workers, to copy it to these hosts; `None` if there are none.
pub(crate) fn program_for(hosts: &[Host]) -> Result<Option<Program>, SessionError> {
    if hosts.is_empty() { Ok(None) } else { read_worker_program().map(Some) }
}

pub(crate) fn read_worker_program() -> Result<Program, SessionError> {
    let path = worker_program()?;
    Program::read(&path).map_err(SessionError::file("read", &path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_replaced_after_it_was_found_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let agent = folder.path().join(AGENT_PROGRAM);
        std::fs::write(&agent, "one").unwrap();
        let found = FoundProgram::find(&folder.path().join("weighbridge")).unwrap();
        found.require_unchanged().unwrap();
        std::fs::rename(&agent, folder.path().join("old")).unwrap();
        std::fs::write(&agent, "one").unwrap();
        let error = found.require_unchanged().unwrap_err();
        assert!(error.to_string().ends_with("was replaced while it was in use"), "{error}");
    }
}
