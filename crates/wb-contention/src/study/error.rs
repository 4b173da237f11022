//! Errors of studies.

use wb_record::RecordError;

use crate::solve::SolveError;
use crate::stage::{Instance, StageKey};

/// A result that cannot be derived.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// Records cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A stage has no result.
    #[error("incomplete records of {instance}: {what} has no result; run the sequence again to complete it")]
    NoResult {
        /// The instance.
        instance: Instance,
        /// What is missing.
        what: String,
    },
    /// There are no reports of a stage.
    #[error("no reports of stage {stage} for {what}: give the folder of a copy with --reports")]
    NoReports {
        /// The stage.
        stage: StageKey,
        /// What they are needed for.
        what: &'static str,
    },
    /// It has no solution.
    #[error(transparent)]
    Solve(#[from] SolveError),
}

impl StudyError {
    pub(super) fn no_result(instance: &Instance, what: &str) -> Self {
        Self::NoResult { instance: instance.clone(), what: what.to_owned() }
    }
}
