//! Why a run cannot be studied.

use wb_model::TestName;
use wb_record::RecordError;

/// Why a run cannot be studied.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The folder cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A test of the run is not known here.
    #[error(
        "the run has cells of the test `{test}`, which is not known here: put its file into tests.d/ or beside the plan"
    )]
    UnknownTest {
        /// Which.
        test: TestName,
    },
    /// A file of the run's environment is no environment.
    #[error("{path}: {why}")]
    Environment {
        /// Which file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}
