//! Errors of studies.

use wb_record::RecordError;
use wb_results::contention::Instance;

use crate::solve::SolveError;
use crate::stage::StageKey;

#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("incomplete records of {instance}: {what} has no result; run the sequence again to complete it")]
    NoResult { instance: Instance, what: String },
    #[error("no reports of stage {stage} for {what}: give the folder of a copy with --reports")]
    NoReports {
        stage: StageKey,
        /// What they are needed for.
        what: &'static str,
    },
    #[error(transparent)]
    Solve(#[from] SolveError),
}

impl StudyError {
    pub(crate) fn no_result(instance: &Instance, what: &str) -> Self {
        Self::NoResult { instance: instance.clone(), what: what.to_owned() }
    }
}
