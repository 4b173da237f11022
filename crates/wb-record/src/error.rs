//! What can go wrong with a run folder.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong with a run folder, where, and the way out.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The system refused.
    #[error("cannot {operation} {}: {source}{}", path.display(), hint(operation, source))]
    Io {
        /// What was tried: `read`, `write`, `create`.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Something else is where a run is to be recorded, and nothing is written over it or among it.
    #[error("{} is no run folder: {reason}; name a new or empty folder", path.display())]
    Foreign {
        /// What is there.
        path: PathBuf,
        /// What speaks against it.
        reason: &'static str,
    },
    /// Something else is where a run is to be read.
    #[error("{} is no run: {why}; name the folder that `weighbridge run --into` wrote", path.display())]
    NotARun {
        /// What is there.
        path: PathBuf,
        /// What speaks against it.
        why: &'static str,
    },
    /// There is nothing at this place.
    #[error("there is no run at {}: `weighbridge run` makes one", path.display())]
    NoRun {
        /// Where.
        path: PathBuf,
    },
    /// The journal of a run that has samples is not there.
    #[error("{} is gone, and only it says what the attempts in this folder are: put it back", path.display())]
    NoJournal {
        /// Where it should be.
        path: PathBuf,
    },
    /// Another controller is writing to it.
    #[error("another weighbridge is writing to {}: wait for it or choose another folder", path.display())]
    Busy {
        /// Which.
        path: PathBuf,
    },
    /// A line within the journal that is none, while later ones are.
    #[error(
        "{}:{line}: {why}; something else changed this file: put the line right or remove it, and what it told is \
         measured again",
        path.display()
    )]
    Torn {
        /// Which.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A file that does not say what it should.
    #[error("{}:{line}: {why}; something else changed this file: put it back as it was", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A file that was written by a newer program.
    #[error("{} has schema {found}, and this program knows {supported}: use a newer weighbridge", path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// What it says.
        found: u32,
        /// What is known.
        supported: u32,
    },
}

fn hint(what: &str, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied if what == "read" => "; its owner may let you read it",
        io::ErrorKind::StorageFull => "; free some space and run the same line again: it goes on from here",
        io::ErrorKind::PermissionDenied => "; choose a folder that you may write to",
        _ => "",
    }
}

impl RecordError {
    /// For `map_err`: the system refused to do `what` with `path`.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { operation: what, path, source }
    }
}
