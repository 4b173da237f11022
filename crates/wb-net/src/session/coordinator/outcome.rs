//! The outcome of a run.

use crate::engine::protocol::EngineError;
use crate::engine::report::EngineReport;

/// The outcome of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// Why it did not run to its end.
    pub failure: Option<RunFailure>,
    /// The report of each participant, in their order; `None` if it sent none.
    pub reports: Vec<Option<EngineReport>>,
    /// Transactions that were truncated, as group and transaction.
    pub truncated: Vec<(usize, usize)>,
    /// Datagram totals by group; the difference between sent and received ones was lost.
    pub datagrams: Vec<DatagramTotals>,
}

/// Datagrams of a group, counted on both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatagramTotals {
    /// Sent by the client.
    pub client_sent: u64,
    /// Received by the server, of those.
    pub server_received: u64,
    /// Sent by the server.
    pub server_sent: u64,
    /// Received by the client, of those.
    pub client_received: u64,
}

impl std::iter::Sum for DatagramTotals {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, other| Self {
            client_sent: sum.client_sent + other.client_sent,
            server_received: sum.server_received + other.server_received,
            server_sent: sum.server_sent + other.server_sent,
            client_received: sum.client_received + other.client_received,
        })
    }
}

/// Why a run did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunFailure {
    /// A strand or an engine failed.
    #[error("{}{error}", host.as_ref().map(|host| format!("{host}: ")).unwrap_or_default())]
    Engine {
        /// The host; `None` for this machine.
        host: Option<String>,
        /// The cause.
        error: EngineError,
    },
    /// The connection to a participant was lost.
    #[error("{} was lost: {reason}", host.as_deref().unwrap_or("a process of this machine"))]
    Lost {
        /// The host; `None` for a process of this machine.
        host: Option<String>,
        /// The reason.
        reason: String,
    },
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl RunFailure {
    /// Creates the failure for a lost participant.
    pub(super) fn participant_lost(host: Option<String>, why: &str) -> Self {
        Self::Lost { host, reason: why.to_owned() }
    }
}
