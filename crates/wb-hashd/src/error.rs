//! Errors that stop the workload.

use std::io;
use std::path::{Path, PathBuf};

use wb_sys::PathError;

use crate::ParamError;
use crate::size::format_size;

/// Why the workload could not be started, or was ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HashdError {
    /// A parameter outside its limits.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The footprint of files does not fit into the folder's file system.
    #[error(
        "cannot create {} of test files in {}: {} are free",
        format_size(*required), path.display(), format_size(*free)
    )]
    DiskSpace {
        /// Bytes that have to be written.
        required: u64,
        /// Bytes that are free.
        free: u64,
        path: PathBuf,
    },
    #[error(
        "cannot use {} of anonymous memory: {} are available, swap included",
        format_size(*required), format_size(*available)
    )]
    Memory {
        /// Bytes that requests would touch.
        required: u64,
        /// Bytes that are available.
        available: u64,
    },
    #[error(transparent)]
    File(#[from] PathError),
    /// Test files that could not be read while the footprint was filled.
    #[error("cannot read a test file: {source}")]
    Read { source: io::Error },
    /// Address space could not be reserved.
    #[error("cannot map {} of memory: {source}", format_size(*bytes as u64))]
    Map {
        /// The requested bytes.
        bytes: usize,
        source: io::Error,
    },
    #[error("cannot start a thread: {source}")]
    Thread { source: io::Error },
    /// It was cancelled before it had started.
    #[error("cancelled")]
    Cancelled,
}

impl HashdError {
    /// For `map_err`: the error of an operation on a file.
    pub(crate) fn file(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| PathError::new(operation, path)(source).into()
    }

    /// How to resolve the error, if known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::DiskSpace { .. } => Some("--memory reduces the footprint, --dir chooses another file system"),
            Self::Memory { .. } => Some("--memory reduces the footprint"),
            _ => None,
        }
    }
}
