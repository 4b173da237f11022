use wb_agent::WorkerError;
use wb_model::{AttemptOutcome, Nanos, WorkerName};

/// Why an attempt did not complete.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    #[error("not done after {after}")]
    Timeout { after: Nanos },
    #[error("{status}")]
    Crashed {
        /// Which process, and how it ended.
        status: String,
    },
    /// The attempt could not be started.
    #[error("{reason}")]
    Refused {
        /// The reason, and what to do.
        reason: String,
    },
    #[error("cancelled")]
    Cancelled,
    #[error("lost {worker}: {reason}")]
    Lost { worker: WorkerName, reason: String },
}

impl Failure {
    pub fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into() }
    }

    pub fn crashed(status: impl Into<String>) -> Self {
        Self::Crashed { status: status.into() }
    }

    pub fn foreign_state() -> Self {
        Self::refused("prepared state belongs to another test")
    }

    /// Prefixes the failure with its worker, for cells with several workers.
    pub fn on_worker(self, worker: &WorkerName) -> Self {
        self.prefixed(&format!("on {worker}"))
    }

    pub fn in_cleanup(self) -> Self {
        let failure = match self {
            Self::Timeout { .. } => Self::crashed(self.to_string()),
            other => other,
        };
        failure.prefixed("cleanup failed")
    }

    fn prefixed(self, prefix: &str) -> Self {
        match self {
            Self::Crashed { status } => Self::Crashed { status: format!("{prefix}: {status}") },
            Self::Refused { reason } => Self::Refused { reason: format!("{prefix}: {reason}") },
            other @ (Self::Timeout { .. } | Self::Cancelled | Self::Lost { .. }) => other,
        }
    }

    pub fn outcome(&self) -> AttemptOutcome {
        match self.clone() {
            Self::Timeout { after } => AttemptOutcome::Timeout { after },
            Self::Crashed { status } => AttemptOutcome::Crashed { status },
            Self::Refused { reason } => AttemptOutcome::Refused { reason },
            Self::Cancelled => AttemptOutcome::Cancelled,
            Self::Lost { worker, reason } => AttemptOutcome::Lost { worker, reason },
        }
    }
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Lost { worker, reason } => Self::Lost { worker, reason },
            other => Self::refused(other.to_string()),
        }
    }
}
