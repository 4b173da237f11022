//! Errors of sequences.

use std::path::PathBuf;

use wb_record::RecordError;

use crate::Bench;
use crate::runner::StageFailure;
use crate::sequence::ScheduleError;
use crate::stage::Instance;
use crate::study::StudyError;

/// Why a sequence did not end with all results.
#[derive(Debug, thiserror::Error)]
pub enum SequenceError {
    /// It cannot be executed in any order.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// This program cannot run a bench.
    #[error("cannot run {bench}: not available in this build")]
    Unavailable {
        /// The bench.
        bench: Bench,
    },
    /// A stage failed.
    #[error("{instance}: {label}: {failure}")]
    Stage {
        /// The instance.
        instance: Instance,
        /// The stage, for people.
        label: String,
        /// What happened.
        failure: StageFailure,
    },
    /// A runner returned the result of another kind of stage: a bug of this program.
    #[error("{instance}: {label}: the result is of another kind of stage")]
    WrongMeasurement {
        /// The instance.
        instance: Instance,
        /// The stage, for people.
        label: String,
    },
    /// The result of a bench that ended is missing.
    #[error("missing result {}: `study` derives it again", path.display())]
    MissingResult {
        /// Its file.
        path: PathBuf,
    },
    /// Records cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A result cannot be derived.
    #[error(transparent)]
    Study(#[from] StudyError),
}

impl SequenceError {
    /// How to go on, if known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Stage {
                failure:
                    StageFailure::Requirements { .. } | StageFailure::IoControllerInUse { .. } | StageFailure::CgroupV1,
                ..
            } => None,
            Self::Stage { .. } => Some("run the same command again: it goes on at the last checkpoint"),
            Self::Schedule(_)
            | Self::Unavailable { .. }
            | Self::WrongMeasurement { .. }
            | Self::MissingResult { .. }
            | Self::Record(_)
            | Self::Study(_) => None,
        }
    }

    /// Whether the user interrupted it.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Stage { failure: StageFailure::Cancelled, .. })
    }
}
