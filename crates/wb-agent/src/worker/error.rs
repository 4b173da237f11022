//! Why a worker did not do what it was asked.

use std::io;

use wb_model::{Bytes, WorkerName};

use crate::frame::FrameError;
use crate::protocol::{Fault, VERSION};
use crate::session::AgentSession;

/// Why a worker did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Its agent cannot be started.
    #[error("the agent `{program} agent` cannot be started: {source}")]
    StartFailed {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// Its agent is of another version.
    #[error(
        "the agent on `{worker}` (weighbridge {release}) speaks version {protocol} of the protocol, this program {VERSION}: use the same weighbridge on both"
    )]
    Version {
        /// The worker.
        worker: WorkerName,
        /// The agent's release.
        release: String,
        /// The version that it speaks.
        protocol: u32,
    },
    /// What answers is no agent.
    #[error("what answers on `{worker}` is no agent: {source}")]
    Handshake {
        /// The worker.
        worker: WorkerName,
        /// What came instead.
        source: FrameError,
    },
    /// Somebody else has the machine.
    #[error("`{worker}` is in use by {}", .holder.as_ref().map_or("somebody else".to_owned(), AgentSession::to_string))]
    InUse {
        /// The worker.
        worker: WorkerName,
        /// Who, where that can be told.
        holder: Option<AgentSession>,
    },
    /// Its agent has ended, or the way to it.
    #[error("the worker `{worker}` is lost: {why}")]
    Lost {
        /// The worker.
        worker: WorkerName,
        /// How it was noticed.
        why: String,
    },
    /// Its agent refused, or could not.
    #[error("on `{worker}`: {fault}")]
    Fault {
        /// The worker.
        worker: WorkerName,
        /// Why.
        fault: Fault,
    },
    /// A file that is longer than was allowed.
    #[error("`{path}` on `{worker}` is longer than {most} bytes")]
    FileTooLarge {
        /// The worker.
        worker: WorkerName,
        /// The file.
        path: String,
        /// What was allowed.
        most: Bytes,
    },
}

impl WorkerError {
    /// Why its agent did not do it, when it was asked and is there.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Fault { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// Whether the worker is gone, and everything that ran on it.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }
}
