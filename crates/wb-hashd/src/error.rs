//! Errors that stop the workload.

use std::io;
use std::path::{Path, PathBuf};

use wb_sys::PathError;

use crate::ParamError;
use crate::size::format_size;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HashdError {
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error(
        "cannot create {} of test files in {}: {} are free",
        format_size(*required), path.display(), format_size(*free)
    )]
    DiskSpace {
        /// Bytes that have to be written.
        required: u64,
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
        available: u64,
    },
    #[error(transparent)]
    File(#[from] PathError),
    /// While the footprint was filled.
    #[error("cannot read a test file: {source}")]
    Read { source: io::Error },
    #[error("cannot map {} of memory: {source}", format_size(*bytes as u64))]
    Map { bytes: usize, source: io::Error },
    #[error("cannot start a thread: {source}")]
    Thread { source: io::Error },
    /// It was cancelled before it had started.
    #[error("cancelled")]
    Cancelled,
}

impl HashdError {
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
