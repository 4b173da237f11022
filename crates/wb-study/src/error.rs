//! Errors of the evaluation of a run.

use wb_model::{CellId, TestName};
use wb_record::RecordError;

/// Why a run cannot be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The run folder cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("unknown test `{0}` in the run: pass the folder of its definition with --tests-d")]
    UnknownTest(TestName),
    #[error(
        "missing definition of `{cell}` in {path}: restore the file, or run the same command again, which rewrites it"
    )]
    Undefined {
        cell: Box<CellId>,
        /// The file that should define it.
        path: String,
    },
    /// A recorded environment of the run is invalid.
    #[error("{path}: {reason}")]
    Environment { path: String, reason: String },
    #[error("{path}, line {line}: invalid time `{time}`: expected an RFC 3339 date and time")]
    Time {
        /// The journal.
        path: String,
        /// The number of the line, from 1.
        line: usize,
        time: String,
    },
}
