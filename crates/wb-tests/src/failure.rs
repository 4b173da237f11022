//! Why a sample could not be taken.

use wb_model::{AttemptOutcome, Nanos, WorkerName};

/// Why an attempt did not complete.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// It was ended at its limit.
    #[error("not done after {after}")]
    Timeout {
        /// The limit.
        after: Nanos,
    },
    /// A process of it failed.
    #[error("{status}")]
    Crashed {
        /// Which one, and how.
        status: String,
    },
    /// It could not be started.
    #[error("{reason}")]
    Refused {
        /// Why, and the way out.
        reason: String,
    },
    /// The user ended it.
    #[error("cancelled")]
    Cancelled,
    /// The worker went away.
    #[error("lost {worker}: {why}")]
    Lost {
        /// Which one.
        worker: WorkerName,
        /// How that showed.
        why: String,
    },
}

impl Failure {
    /// It could not be started.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into() }
    }

    /// A process of it failed.
    pub fn crashed(status: impl Into<String>) -> Self {
        Self::Crashed { status: status.into() }
    }

    /// The same, of one of several workers.
    pub fn on_worker(self, worker: &WorkerName) -> Self {
        match self {
            Self::Crashed { status } => Self::Crashed { status: format!("on {worker}: {status}") },
            Self::Refused { reason } => Self::Refused { reason: format!("on {worker}: {reason}") },
            other @ (Self::Timeout { .. } | Self::Cancelled | Self::Lost { .. }) => other,
        }
    }

    /// The same, of the cleanup after a sample.
    pub fn in_cleanup(self) -> Self {
        match self {
            Self::Crashed { status } => Self::Crashed { status: format!("cleanup failed: {status}") },
            Self::Refused { reason } => Self::Refused { reason: format!("cleanup failed: {reason}") },
            Self::Timeout { after } => Self::Crashed { status: format!("cleanup failed: not done after {after}") },
            other @ (Self::Cancelled | Self::Lost { .. }) => other,
        }
    }

    /// As the outcome of its attempt.
    pub fn outcome(&self) -> AttemptOutcome {
        match self.clone() {
            Self::Timeout { after } => AttemptOutcome::Timeout { after },
            Self::Crashed { status } => AttemptOutcome::Crashed { status },
            Self::Refused { reason } => AttemptOutcome::Refused { reason },
            Self::Cancelled => AttemptOutcome::Cancelled,
            Self::Lost { worker, why } => AttemptOutcome::Lost { worker, reason: why },
        }
    }
}
