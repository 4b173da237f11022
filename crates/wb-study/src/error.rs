//! Errors of the evaluation of a run.

use wb_model::{CellId, TestName};
use wb_record::RecordError;

#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("unknown test `{0}` in the run: pass the folder of its definition with --tests-d")]
    UnknownTest(TestName),
    #[error(
        "missing definition of `{cell}` in {path}: restore the file, or repeat the command with `--into` and this run folder, which rewrites it"
    )]
    Undefined {
        cell: Box<CellId>,
        /// The file that should define the cell.
        path: String,
    },
    #[error("{path}: {reason}")]
    Environment { path: String, reason: String },
    #[error("{path}, line {line}: invalid time `{time}`: expected an RFC 3339 date and time")]
    Time {
        path: String,
        /// From 1.
        line: usize,
        time: String,
    },
}
