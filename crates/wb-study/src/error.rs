//! Why a run cannot be studied.

use wb_model::{CellId, TestName};
use wb_record::RecordError;

/// Why a run cannot be studied.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The folder cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A test of the run is not known here.
    #[error("the run has cells of the test `{test}`, which is not known here: name its file's folder by --tests-d")]
    UnknownTest {
        /// Which.
        test: TestName,
    },
    /// A cell that the run wanted, and that nothing defines.
    #[error(
        "{path} does not define `{cell}`, which the run has: put the file back, or run the same line again into the \
         folder, which writes it anew"
    )]
    Undefined {
        /// Which.
        cell: Box<CellId>,
        /// The file that should say it.
        path: String,
    },
    /// A file of the run's environment is no environment.
    #[error("{path}: {why}")]
    Environment {
        /// Which file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A line of the journal whose time cannot be read.
    #[error("{path}, line {line}: invalid time `{time}`: expected a date and time as RFC 3339 has them")]
    Time {
        /// The journal.
        path: String,
        /// The line's number, from 1.
        line: usize,
        /// What stands there.
        time: String,
    },
}
