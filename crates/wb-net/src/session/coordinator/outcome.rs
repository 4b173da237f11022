//! How a run ended.

use crate::engine::{
    protocol::{EngineError, ExecutorKind},
    report::EngineReport,
};

/// How a run ended.
#[derive(Debug)]
pub struct RunOutcome {
    /// Why it did not go to its end.
    pub failure: Option<RunFailure>,
    /// What each party measured, in their order; none if it did not say.
    pub reports: Vec<Option<EngineReport>>,
    /// How each party carried out its strands.
    pub executors: Vec<Option<ExecutorKind>>,
    /// Transactions that were cut, as group and transaction.
    pub truncated: Vec<(usize, usize)>,
    /// What client and server sent and received, by group: datagrams that were lost are the difference.
    pub datagrams: Vec<DatagramTotals>,
}

/// Datagrams of a group, both sides counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatagramTotals {
    /// Sent by the client.
    pub client_sent: u64,
    /// Of those, received by the server.
    pub server_received: u64,
    /// Sent by the server.
    pub server_sent: u64,
    /// Of those, received by the client.
    pub client_received: u64,
}

impl std::iter::Sum for DatagramTotals {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            client_sent: sum.client_sent + one.client_sent,
            server_received: sum.server_received + one.server_received,
            server_sent: sum.server_sent + one.server_sent,
            client_received: sum.client_received + one.client_received,
        })
    }
}

/// Why a run did not go to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunFailure {
    /// A strand or site could not go on.
    #[error("{}{fault}", host.as_ref().map(|host| format!("{host}: ")).unwrap_or_default())]
    Engine {
        /// At which host; none for this machine.
        host: Option<String>,
        /// Why.
        fault: EngineError,
    },
    /// A party is gone.
    #[error("{} was lost: {why}", host.as_deref().unwrap_or("a process of this machine"))]
    Lost {
        /// Which host; none for a process of this machine.
        host: Option<String>,
        /// What is known of it.
        why: String,
    },
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
}

impl RunFailure {
    /// A party is gone.
    pub(super) fn participant_lost(host: Option<String>, why: &str) -> Self {
        Self::Lost { host, why: why.to_owned() }
    }
}
