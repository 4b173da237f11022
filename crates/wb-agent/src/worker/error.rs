//! Errors of requests to a worker.

use std::io;

use wb_model::{Bytes, WorkerName};

use crate::frame::FrameError;
use crate::protocol::{AgentSession, Fault, VERSION};

/// Error of a request to a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The agent cannot be started.
    #[error("cannot start the agent `{program} agent`: {source}")]
    StartFailed {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The agent has another protocol version.
    #[error(
        "the agent on `{worker}` (weighbridge {release}) has protocol version {protocol}, this program has {VERSION}: use the same weighbridge release on both"
    )]
    Version {
        /// The worker.
        worker: WorkerName,
        /// The agent's release.
        release: String,
        /// The agent's protocol version.
        protocol: u32,
    },
    /// The handshake failed: the other side is not an agent.
    #[error("invalid response from `{worker}`, expected a weighbridge agent: {source}")]
    Handshake {
        /// The worker.
        worker: WorkerName,
        /// The framing error.
        source: FrameError,
    },
    /// Another controller uses the machine exclusively.
    #[error("`{worker}` is in use by {}", .holder.as_ref().map_or("another controller".to_owned(), AgentSession::to_string))]
    InUse {
        /// The worker.
        worker: WorkerName,
        /// The other controller, if known.
        holder: Option<AgentSession>,
    },
    /// The agent or the connection to it has ended.
    #[error("the worker `{worker}` is lost: {reason}")]
    Lost {
        /// The worker.
        worker: WorkerName,
        /// The reason.
        reason: String,
    },
    /// The agent refused the request or failed.
    #[error("on `{worker}`: {fault}")]
    Fault {
        /// The worker.
        worker: WorkerName,
        /// The agent's fault.
        fault: Fault,
    },
    /// A file exceeds the allowed size.
    #[error("`{path}` on `{worker}` is larger than {limit} bytes")]
    FileTooLarge {
        /// The worker.
        worker: WorkerName,
        /// The file.
        path: String,
        /// The allowed size.
        limit: Bytes,
    },
}

impl WorkerError {
    /// Returns the agent's fault, if the agent replied with one.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Fault { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// Whether the worker is lost, with everything that ran on it.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }
}
