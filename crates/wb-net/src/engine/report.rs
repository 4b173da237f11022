//! What a site measured, as it is sent to whoever coordinates the run.

use serde::{Deserialize, Serialize};

use super::{
    tally::{StrandTally, TransactionTally},
    usage::Usage,
    work::{Executor, Progress, Side},
};
use crate::netstat::Interface;
use crate::transport::Info;

/// What a site measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// On which side.
    pub side: Side,
    /// By group; those that this site has no strands of did nothing.
    pub groups: Vec<GroupReport>,
    /// Looks at what was done, over time.
    pub progress: Vec<Progress>,
    /// What the kernel's network interfaces counted meanwhile.
    pub interfaces: Vec<Interface>,
    /// Connections and datagrams from elsewhere that were dropped.
    pub refused: u64,
    /// How strands were carried out.
    pub executor: Executor,
}

/// What the strands of one group did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GroupReport {
    /// By transaction.
    pub transactions: Vec<TransactionTally>,
    /// By strand.
    pub strands: Vec<StrandTally>,
    /// What the kernel says of the connections.
    pub connections: Info,
    /// What the strands' threads used while transactions ran that move data, or all if none does.
    pub usage: Usage,
}
