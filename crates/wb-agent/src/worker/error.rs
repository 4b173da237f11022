use std::io;

use wb_model::{Bytes, WorkerName};

use crate::frame::FrameError;
use crate::protocol::{AgentSession, Fault, VERSION};

/// Error of a request to a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("cannot start the agent `{program} agent`: {source}")]
    StartFailed { program: String, source: io::Error },
    #[error(
        "the agent on `{worker}` (weighbridge {release}) has protocol version {protocol}, this program has {VERSION}: use the same weighbridge release on both"
    )]
    Version { worker: WorkerName, release: String, protocol: u32 },
    /// The handshake failed: the other side is not an agent.
    #[error("invalid response from `{worker}`, expected a weighbridge agent: {source}")]
    Handshake { worker: WorkerName, source: FrameError },
    #[error("`{worker}` is in use by {}", .holder.as_ref().map_or("another controller".to_owned(), AgentSession::to_string))]
    InUse { worker: WorkerName, holder: Option<AgentSession> },
    /// The agent or the connection to it has ended.
    #[error("the worker `{worker}` is lost: {reason}")]
    Lost { worker: WorkerName, reason: String },
    /// The agent refused the request or failed.
    #[error("on `{worker}`: {fault}")]
    Fault { worker: WorkerName, fault: Fault },
    #[error("`{path}` on `{worker}` is larger than {limit} bytes")]
    FileTooLarge { worker: WorkerName, path: String, limit: Bytes },
}

impl WorkerError {
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
