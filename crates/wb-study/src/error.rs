//! Errors of the evaluation of a run.

use wb_model::{CellId, TestName};
use wb_record::RecordError;

/// Why a run cannot be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The run folder cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A test of the run is unknown.
    #[error("unknown test `{0}` in the run: pass the folder of its definition with --tests-d")]
    UnknownTest(TestName),
    /// A cell of the run has no definition.
    #[error(
        "missing definition of `{cell}` in {path}: restore the file, or run the same command again, which rewrites it"
    )]
    Undefined {
        /// The cell.
        cell: Box<CellId>,
        /// The file that should define it.
        path: String,
    },
    /// A recorded environment of the run is invalid.
    #[error("{path}: {reason}")]
    Environment {
        /// The file.
        path: String,
        /// Why it is invalid.
        reason: String,
    },
    /// A line of the journal has an invalid time.
    #[error("{path}, line {line}: invalid time `{time}`: expected an RFC 3339 date and time")]
    Time {
        /// The journal.
        path: String,
        /// The number of the line, from 1.
        line: usize,
        /// The invalid time.
        time: String,
    },
}
