//! The result of a group of strands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConnectionInfo, Totals, TransactionResult, Usage};

/// The result of one group.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct GroupResult {
    /// Name of the group.
    pub name: String,
    /// Number of strands.
    pub strand_count: u32,
    /// Whether strands are processes.
    pub processes: bool,
    /// Totals of its data phase.
    pub totals: Totals,
    /// CPU time and context switches of the client's strands in the data phase.
    pub client_usage: Usage,
    /// CPU time and context switches of the servers' strands in the data phase.
    pub server_usage: Usage,
    /// Its connections, from the client's kernel.
    pub client_connections: ConnectionInfo,
    /// Its connections, from the servers' kernels.
    pub server_connections: ConnectionInfo,
    /// Datagrams between both sides, if there were any.
    pub datagrams: Option<DatagramCounts>,
    /// Bytes that were received, and that their sender had not counted as sent when its window ended. They are included in
    /// what was sent.
    #[serde(default)]
    pub uncounted_bytes: u64,
    /// Its transactions, in order.
    pub transactions: Vec<TransactionResult>,
    /// The client's strands.
    pub strands: Vec<StrandResult>,
}

/// Numbers of datagrams, sent and lost, including those after the end of windows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DatagramCounts {
    /// Sent by the client.
    pub client_sent: u64,
    /// Lost of those.
    pub client_lost: u64,
    /// Sent by servers.
    pub server_sent: u64,
    /// Lost of those.
    pub server_lost: u64,
}

/// The result of one strand of the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StrandResult {
    /// Index of the strand in the group.
    pub strand: u32,
    /// Executions of flowops.
    pub operations: u64,
    /// Rounds of transactions.
    pub rounds: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Mean duration of a round in nanoseconds.
    pub mean_ns: Option<f64>,
    /// Shortest duration of a round in nanoseconds.
    pub min_ns: Option<u64>,
    /// Longest duration of a round in nanoseconds.
    pub max_ns: Option<u64>,
}
