//! What can go wrong with a run folder.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong with a run folder, where, and the way out.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The system refused.
    #[error("cannot {what} {}: {source}{}", path.display(), way_out(source))]
    Io {
        /// What was tried: `read`, `write`, `create`.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// A folder that holds something else.
    #[error("{} is not a run folder: it has files but no run.json; name a new or empty folder", path.display())]
    NotARun {
        /// Which.
        path: PathBuf,
    },
    /// There is nothing at this place.
    #[error("there is no run at {}: `weighbridge run` makes one", path.display())]
    NoRun {
        /// Where.
        path: PathBuf,
    },
    /// Another controller is writing to it.
    #[error("another weighbridge is writing to {}: wait for it or choose another folder", path.display())]
    Busy {
        /// Which.
        path: PathBuf,
    },
    /// A file that does not say what it should.
    #[error("{}:{line}: {why}; everything before it can be read, and this file was changed by something else", path.display())]
    Torn {
        /// Which.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A file that was written by a newer program.
    #[error("{} has schema {found}, and this program knows {known}: use a newer weighbridge", path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// What it says.
        found: u32,
        /// What is known.
        known: u32,
    },
}

fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; free some space and run the same line again: it goes on from here",
        io::ErrorKind::PermissionDenied => "; choose a folder that you may write to",
        _ => "",
    }
}

impl RecordError {
    /// For `map_err`: the system refused to do `what` with `path`.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}
