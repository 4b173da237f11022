//! What a site measured, as it is sent to whoever coordinates the run.

use serde::{Deserialize, Serialize};

use super::{
    protocol::{EngineProgress, ExecutorKind, Side},
    tally::{StrandTally, TransactionTally},
    usage::Usage,
};
use crate::netstat::NetworkCounters;
use crate::transport::ConnectionInfo;

/// What a site measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EngineReport {
    /// On which side.
    pub side: Side,
    /// By group; those that this site has no strands of did nothing.
    pub groups: Vec<GroupReport>,
    /// Looks at what was done, over time.
    pub progress: Vec<EngineProgress>,
    /// What the kernel counted meanwhile.
    pub network: NetworkCounters,
    /// Connections and datagrams from elsewhere that were dropped.
    pub rejected_connections: u64,
    /// How strands were carried out.
    pub executor: ExecutorKind,
}

impl EngineReport {
    /// Together with that of another site of the same machine.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        for (mine, theirs) in self.groups.iter_mut().zip(other.groups) {
            mine.add(theirs);
        }
        for (mine, theirs) in self.progress.iter_mut().zip(&other.progress) {
            mine.sent += theirs.sent;
            mine.received += theirs.received;
            mine.operations += theirs.operations;
        }
        self.rejected_connections += other.rejected_connections;
        self.executor = self.executor.max(other.executor);
        self
    }
}

impl GroupReport {
    /// Adds what other strands of the group did.
    pub fn add(&mut self, other: Self) {
        if self.transactions.is_empty() {
            self.transactions = other.transactions;
        } else {
            self.transactions.iter_mut().zip(&other.transactions).for_each(|(mine, theirs)| mine.add(theirs));
        }
        self.strands.extend(other.strands);
        self.strands.sort_by_key(|strand| strand.strand);
        self.connections.add(&other.connections);
        self.usage.add(other.usage);
    }
}

/// What the strands of one group did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct GroupReport {
    /// By transaction.
    pub transactions: Vec<TransactionTally>,
    /// By strand.
    pub strands: Vec<StrandTally>,
    /// What the kernel says of the connections.
    pub connections: ConnectionInfo,
    /// What the strands' threads used while transactions ran that move data, or all if none does.
    pub usage: Usage,
}
