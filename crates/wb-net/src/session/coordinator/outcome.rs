//! How a network run ended, and what its engines reported.

use crate::engine::protocol::EngineError;
use crate::engine::report::EngineReport;

#[derive(Debug)]
pub struct RunOutcome {
    /// Why it did not complete.
    pub failure: Option<RunFailure>,
    /// The report of each participant (an engine of a host) in their order; `None` if it sent none.
    pub reports: Vec<Option<EngineReport>>,
    /// Transactions whose window was shortened to the time limit: indexes of the group and of the transaction in it.
    pub truncated: Vec<(usize, usize)>,
    /// Datagrams of each group of strands: sent minus received were lost.
    pub datagrams: Vec<DatagramTotals>,
}

/// Datagrams of a group of strands, counted on both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatagramTotals {
    pub client_sent: u64,
    pub server_received: u64,
    pub server_sent: u64,
    pub client_received: u64,
}

impl DatagramTotals {
    /// Datagrams of the client that no server received.
    pub fn client_lost(self) -> u64 {
        self.client_sent.saturating_sub(self.server_received)
    }

    /// Datagrams of servers that the client did not receive.
    pub fn server_lost(self) -> u64 {
        self.server_sent.saturating_sub(self.client_received)
    }
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunFailure {
    /// An engine, or one of its strands (threads or processes that execute operations), failed.
    #[error("{}{error}", host.as_ref().map(|host| format!("{host}: ")).unwrap_or_default())]
    Engine {
        /// `None` for this machine.
        host: Option<String>,
        error: EngineError,
    },
    #[error("lost the connection to {}: {reason}", host.as_deref().unwrap_or("a process on this machine"))]
    Lost {
        /// `None` for a process of this machine.
        host: Option<String>,
        reason: String,
    },
    #[error("interrupted")]
    Interrupted,
}

impl RunFailure {
    pub(super) fn participant_lost(host: Option<String>, reason: &str) -> Self {
        Self::Lost { host, reason: reason.to_owned() }
    }
}
