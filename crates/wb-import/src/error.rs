//! Why something was not imported.

use std::io;
use std::path::PathBuf;

use wb_model::{CellId, TestName};
use wb_record::RecordError;

use crate::Format;

/// Why a file was left out, told after its name.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is larger than any result.
    #[error("is larger than {} MiB, which no result is", limit >> 20)]
    TooLarge {
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// It is of no known format.
    #[error("is of no known format: {} are", Format::names())]
    Unknown,
    /// It is not even what its name says.
    #[error("is malformed: {0}")]
    InvalidDocument(String),
    /// It is not what its format should be.
    #[error("is malformed as {format}: {why}")]
    Malformed {
        /// The format that it is of otherwise, or that was asked for.
        format: Format,
        /// What is wrong with it, and where.
        why: String,
    },
    /// There is nothing in it that could be imported.
    #[error("has nothing to import: {0}")]
    Empty(String),
    /// The program that wrote it failed before it measured.
    #[error("has no result: {program} says: {said}")]
    Failed {
        /// The program.
        program: &'static str,
        /// Its words.
        said: String,
    },
    /// The run has a cell of the same name that is defined otherwise.
    #[error(
        "`{cell}` is there already, with other parameters: {}; import into another folder, or tell it apart with --id",
        differences.join("; ")
    )]
    Redefined {
        /// Which.
        cell: Box<CellId>,
        /// Each parameter that differs, with both values.
        differences: Vec<String>,
    },
    /// The run has a metric of the same name that is something else.
    #[error("`{cell}` has a metric `{metric}` already, as {known}, and here it is {new}: import into another folder")]
    MetricConflict {
        /// In which cell.
        cell: Box<CellId>,
        /// `CLASS/METRIC`.
        metric: String,
        /// What it is there.
        known: String,
        /// What it is here.
        new: String,
    },
    /// The run has a test of that name which is another one.
    #[error("the run has another test of the name `{test}`: choose a name with --test")]
    TestConflict {
        /// The name.
        test: TestName,
    },
    /// Several machines' results would become samples of one cell.
    #[error("holds results of several systems, and one profile was asked for: choose one with --system: {}", .0.join(", "))]
    SeveralSystems(Vec<String>),
    /// Several tests would get one name.
    #[error("holds results of several tests, and one name was asked for with --test: {}", .0.join(", "))]
    SeveralTests(Vec<String>),
    /// The system that was asked for is not in it.
    #[error("has no system `{asked}`: it has {}", known.join(", "))]
    UnknownSystem {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: Vec<String>,
    },
}

/// Why nothing was imported, or no more.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The run folder.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file that cannot be imported, where that was to be an error.
    #[error("{} {why}", path.display())]
    InvalidFile {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: ReadError,
    },
    /// A file that is no longer as it was read.
    #[error("{} changed while it was imported: import it again", path.display())]
    Changed {
        /// Which.
        path: PathBuf,
    },
}
