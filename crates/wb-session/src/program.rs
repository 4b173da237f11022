//! This program as a file, and the runtime of the control plane.

use std::path::{Path, PathBuf};

use wb_fleet::{Host, Program};
use wb_sys::user_folders;

use crate::error::SessionError;
use crate::hash_cache;

/// Creates the single-threaded runtime of the control plane.
///
/// # Errors
/// When the system refuses its resources.
pub fn runtime() -> Result<tokio::runtime::Runtime, SessionError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|source| SessionError::File {
        operation: "start",
        subject: "the event loop".to_owned(),
        source,
    })
}

/// Path of this program's executable.
///
/// # Errors
/// When the system does not report it.
pub fn current_program() -> Result<PathBuf, SessionError> {
    std::env::current_exe().map_err(|source| SessionError::File {
        operation: "locate",
        subject: "this program".to_owned(),
        source,
    })
}

/// This program's executable as it runs, also if its path has another file by now.
const RUNNING_PROGRAM: &str = "/proc/self/exe";

/// SHA-256 of this program's executable.
///
/// # Errors
/// When it cannot be read.
pub fn current_program_hash() -> Result<String, SessionError> {
    let program = Path::new(RUNNING_PROGRAM);
    let hash = std::fs::File::open(program).and_then(|file| hash_cache::hash(file, user_folders::cache().as_deref()));
    Ok(hash.map_err(SessionError::file("read", program))?.as_str().to_owned())
}

/// Reads this program, to copy it to these hosts; `None` if there are none.
pub(crate) fn program_for(hosts: &[Host]) -> Result<Option<Program>, SessionError> {
    if hosts.is_empty() { Ok(None) } else { read_program().map(Some) }
}

/// Reads this program, to copy it to hosts.
pub(crate) fn read_program() -> Result<Program, SessionError> {
    let path = Path::new(RUNNING_PROGRAM);
    Program::read(path).map_err(SessionError::file("read", path))
}
