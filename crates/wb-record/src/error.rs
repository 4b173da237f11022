//! Errors of run folders.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a run folder, with the path and a hint.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// An operation on a file failed.
    #[error("cannot {operation} {}: {source}{}", path.display(), hint(operation, source))]
    Io {
        /// The operation: `read`, `write`, `create`.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path is that of something else than a run folder.
    #[error("{} is not a run folder: {reason}; {help}", path.display())]
    NotARun {
        /// The path.
        path: PathBuf,
        /// Why it is not a run folder.
        reason: &'static str,
        /// Advice for the user.
        help: &'static str,
    },
    /// The run does not exist.
    #[error("no such run: {}; create one with `weighbridge run --into`", path.display())]
    NoRun {
        /// The path.
        path: PathBuf,
    },
    /// The journal of a run with attempts is missing or empty.
    #[error("missing journal {}: restore it, since the attempts in this folder cannot be read without it", path.display())]
    EmptyJournal {
        /// The path of the journal.
        path: PathBuf,
    },
    /// Another controller is writing to the folder.
    #[error("another weighbridge is writing to {}: wait for it or choose another folder", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A line in the middle of the journal is incomplete or invalid.
    #[error(
        "{}:{line}: {reason}; the file was modified: fix or remove the line, and its samples are measured again",
        path.display()
    )]
    InvalidLine {
        /// The journal.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A file has invalid content.
    #[error("{}:{line}: {reason}; the file was modified: restore it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A file was written by a newer version of the program.
    #[error("unsupported schema {version} in {}: this version supports up to {supported}; use a newer weighbridge", path.display())]
    UnsupportedSchema {
        /// The file.
        path: PathBuf,
        /// The schema of the file.
        version: u32,
        /// The newest supported schema.
        supported: u32,
    },
}

/// A hint for an error of the system.
fn hint(operation: &str, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied if operation == "read" => "; ask its owner for read permission",
        io::ErrorKind::StorageFull => "; free some space and run the same command again to resume",
        io::ErrorKind::PermissionDenied => "; choose a writable folder",
        _ => "",
    }
}

impl RecordError {
    /// For `map_err`: the error of an operation on `path`.
    pub fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { operation, path, source }
    }
}
