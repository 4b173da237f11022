//! The metrics of an engine, as sent to the coordinator of the run.

use serde::{Deserialize, Serialize};

use super::clock::Nanos;
use super::tally::{StrandTally, TransactionTally};
use wb_results::net::ConnectionInfo;
use wb_results::net::NetworkCounters;
use wb_results::net::Usage;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EngineReport {
    pub side: Side,
    /// The report of each group, by index; empty for groups without strands in this engine.
    pub groups: Vec<GroupReport>,
    pub progress: Vec<EngineProgress>,
    /// What the kernel counted during the run.
    pub network: NetworkCounters,
    /// Unexpected connections and datagrams that were dropped.
    pub rejected_connections: u64,
    pub executor: ExecutorKind,
}

impl EngineReport {
    /// Merges the report of another engine of the same machine.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        for (own, others) in self.groups.iter_mut().zip(other.groups) {
            own.add(others);
        }
        for (own, others) in self.progress.iter_mut().zip(&other.progress) {
            own.add(others);
        }
        self.rejected_connections += other.rejected_connections;
        self.executor = self.executor.max(other.executor);
        self
    }
}

impl GroupReport {
    pub fn add(&mut self, other: Self) {
        if self.transactions.is_empty() {
            self.transactions = other.transactions;
        } else {
            self.transactions.iter_mut().zip(&other.transactions).for_each(|(own, others)| own.add(others));
        }
        self.strands.extend(other.strands);
        self.strands.sort_by_key(|strand| strand.strand);
        self.connections.add(&other.connections);
        self.usage.add(other.usage);
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct GroupReport {
    pub transactions: Vec<TransactionTally>,
    pub strands: Vec<StrandTally>,
    pub connections: ConnectionInfo,
    /// CPU usage of the strands' threads during the data phase: transactions that move data, or all if none does.
    pub usage: Usage,
}

/// The side of a run that an engine is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// Executes the profile as written.
    Client,
    /// Executes its mirror image.
    Server,
}

/// Totals since the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineProgress {
    /// Time on the engine's monotonic clock.
    pub time: Nanos,
    /// Bytes in complete messages, like `received`.
    pub sent: u64,
    pub received: u64,
    /// Executions of flowops.
    pub operations: u64,
}

impl EngineProgress {
    /// Adds the totals of another engine; the time remains.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.operations += other.operations;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ExecutorKind {
    ThreadPerStrand,
    EventLoop { threads: u32 },
}
