//! This program and that of its agents as files, and the runtime of the control plane.

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
    hash_program(Path::new(RUNNING_PROGRAM))
}

/// Name of the program that runs on workers.
pub const WORKER_PROGRAM: &str = "weighbridge-agent";

/// Path of the program that runs on workers, this machine included: beside this one, or where packages have it.
///
/// # Errors
/// When it is not there.
pub fn worker_program() -> Result<PathBuf, SessionError> {
    let own = current_program()?;
    let folder = own.parent().unwrap_or(Path::new("/"));
    let places = [folder.to_owned(), folder.with_file_name("libexec")].map(|folder| folder.join(WORKER_PROGRAM));
    match places.iter().find(|place| place.is_file()) {
        Some(place) => Ok(place.clone()),
        None => Err(SessionError::NoWorkerProgram { places: places.to_vec() }),
    }
}

/// SHA-256 of the program that runs on workers.
///
/// # Errors
/// When it cannot be read.
pub fn worker_program_hash() -> Result<String, SessionError> {
    hash_program(&worker_program()?)
}

fn hash_program(program: &Path) -> Result<String, SessionError> {
    let hash = std::fs::File::open(program).and_then(|file| hash_cache::hash(file, user_folders::cache().as_deref()));
    Ok(hash.map_err(SessionError::file("read", program))?.as_str().to_owned())
}

/// Reads the program of workers, to copy it to these hosts; `None` if there are none.
pub(crate) fn program_for(hosts: &[Host]) -> Result<Option<Program>, SessionError> {
    if hosts.is_empty() { Ok(None) } else { read_worker_program().map(Some) }
}

/// Reads the program of workers, to copy it to hosts.
pub(crate) fn read_worker_program() -> Result<Program, SessionError> {
    let path = worker_program()?;
    Program::read(&path).map_err(SessionError::file("read", &path))
}
