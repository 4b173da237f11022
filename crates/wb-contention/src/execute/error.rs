//! Errors of sequences.

use std::path::PathBuf;

use wb_record::RecordError;
use wb_results::contention::{Bench, Instance, Series};

use crate::runner::StageFailure;
use crate::sequence::ScheduleError;
use crate::study::StudyError;

#[derive(Debug, thiserror::Error)]
pub enum SequenceError {
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    #[error("cannot run {bench}: not available in this build")]
    Unavailable { bench: Bench },
    #[error("{instance}: {label}: {failure}")]
    Stage { instance: Instance, label: String, failure: StageFailure },
    #[error("{instance}: {label}: the result is of another kind of stage")]
    WrongMeasurement { instance: Instance, label: String },
    #[error("missing result {}: `study` derives it again", path.display())]
    MissingResult { path: PathBuf },
    /// The result has no values of what a solution requires, and the run lacks the result that it follows from.
    #[error("{instance} has no values of {}", names(series))]
    MissingSeries { instance: Instance, series: Vec<Series> },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Study(#[from] StudyError),
}

fn names(series: &[Series]) -> String {
    series.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl SequenceError {
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Stage {
                failure:
                    StageFailure::Requirements { .. } | StageFailure::IoControllerInUse { .. } | StageFailure::CgroupV1,
                ..
            } => None,
            Self::Stage { .. } => Some("run the same command again: it goes on at the last checkpoint"),
            Self::MissingSeries { .. } => {
                Some("solve it in the run that measured it, or name a percentile whose series `format` lists")
            }
            Self::Schedule(_)
            | Self::Unavailable { .. }
            | Self::WrongMeasurement { .. }
            | Self::MissingResult { .. }
            | Self::Record(_)
            | Self::Study(_) => None,
        }
    }

    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Stage { failure: StageFailure::Cancelled, .. })
    }
}
