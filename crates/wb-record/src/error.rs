//! Errors of run folders.

use std::io;
use std::path::{Path, PathBuf};

use wb_sys::PathError;

/// An error of a run folder, with the path.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Io(#[from] PathError),
    /// The path is that of something else than a run folder.
    #[error("`{}` is not a run folder: {reason}", path.display())]
    NotARun {
        path: PathBuf,
        /// Why it is not a run folder.
        reason: &'static str,
        /// Advice for the user.
        help: &'static str,
    },
    /// The run does not exist.
    #[error("cannot read run `{}`: no such folder", path.display())]
    NoRun { path: PathBuf },
    #[error("missing or empty journal `{}`: without it, the attempts in this folder cannot be read", path.display())]
    EmptyJournal {
        /// The path of the journal.
        path: PathBuf,
    },
    #[error("another weighbridge is writing to `{}`", path.display())]
    Busy { path: PathBuf },
    /// A complete line of the journal is invalid; an incomplete last line, of a killed writer, is no error.
    #[error("{}:{line}: {reason}", path.display())]
    InvalidLine {
        /// The journal.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The run folder was moved or removed while it was written to.
    #[error("`{}` was moved, removed or replaced by something else", .0.display())]
    Moved(PathBuf),
    /// A file has invalid content.
    #[error("{}:{line}: {reason}", path.display())]
    Damaged {
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A file was written by a newer version of the program.
    #[error("unsupported schema {version} in `{}`: expected at most {supported}", path.display())]
    UnsupportedSchema {
        path: PathBuf,
        /// The schema of the file.
        version: u32,
        supported: u32,
    },
}

impl RecordError {
    /// How to resolve the error, if known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Io(PathError { operation, source, .. }) => match source.kind() {
                io::ErrorKind::PermissionDenied if *operation == "read" => Some("ask its owner for read permission"),
                io::ErrorKind::StorageFull => Some("free some space; `--into` with this run folder resumes"),
                io::ErrorKind::PermissionDenied => Some("choose a writable folder"),
                _ => None,
            },
            Self::NotARun { help, .. } => Some(help),
            Self::NoRun { .. } => Some("`weighbridge run --into` creates a run folder"),
            Self::EmptyJournal { .. } => Some("restore it from a copy of the run"),
            Self::Busy { .. } => Some("wait for it, or choose another folder"),
            Self::InvalidLine { .. } => {
                Some("the file was modified: restore it, or remove the line, and its samples are measured again")
            }
            Self::Damaged { .. } => Some("the file was modified: restore it"),
            Self::Moved(_) => Some("what is in a moved folder can be continued: run the command with its new name"),
            Self::UnsupportedSchema { .. } => Some("use a newer weighbridge"),
        }
    }

    /// For `map_err`: the error of an operation on `path`.
    pub fn io(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| PathError::new(operation, path)(source).into()
    }
}
