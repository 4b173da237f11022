//! This program as a file, and the runtime of the control plane.

use std::path::{Path, PathBuf};

use wb_sys::user_folders;

use crate::error::SessionError;
use crate::hash_cache;

/// Creates the single-threaded runtime of the control plane.
pub fn runtime() -> Result<tokio::runtime::Runtime, SessionError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|source| SessionError::File {
        operation: "start",
        subject: "the event loop".to_owned(),
        source,
    })
}

pub fn current_program() -> Result<PathBuf, SessionError> {
    std::env::current_exe().map_err(|source| SessionError::File {
        operation: "locate",
        subject: "this program".to_owned(),
        source,
    })
}

/// This program's executable as it runs, also if its path has another file by now.
pub(crate) const RUNNING_PROGRAM: &str = "/proc/self/exe";

/// SHA-256.
pub fn current_program_hash() -> Result<String, SessionError> {
    hash_program(Path::new(RUNNING_PROGRAM), "program-hash.json")
}

/// SHA-256 of a program, kept in a file of this name in the user's cache.
pub(crate) fn hash_program(program: &Path, cached_in: &str) -> Result<String, SessionError> {
    let cache = user_folders::cache();
    let cached_in = cache.as_deref().map(|folder| (folder, cached_in));
    let hash = std::fs::File::open(program).and_then(|file| hash_cache::hash(file, cached_in));
    Ok(hash.map_err(SessionError::file("read", program))?.as_str().to_owned())
}
