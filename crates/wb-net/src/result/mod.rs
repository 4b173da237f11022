//! What a run says in the end: every figure with what it was computed from, and no figure where there is none.
//!
//! Totals are of the data phase: of the transactions that move data, or of all if none does. A rate is what the
//! receiver received in its own window, divided by that window.

mod assembly;
mod latency;
mod nested;
mod progress;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::usage::Usage;
use crate::language::NetProfile;
use crate::netstat::NetworkCounters;
use crate::transport::ConnectionInfo;

pub use latency::{LatencySummary, Percentiles};
pub use nested::{NestedLatency, NestedRow};

/// The result of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RunResult {
    /// The profile's name.
    pub profile: String,
    /// From which every random choice was drawn.
    pub seed: u64,
    /// How the run ended.
    pub outcome: RunStatus,
    /// What one should know of the figures.
    pub notes: Vec<String>,
    /// Of the data phase, all groups together.
    pub totals: Totals,
    /// By group.
    pub groups: Vec<GroupResult>,
    /// The machines that took part: the client first, then the servers.
    pub machines: Vec<MachineResult>,
}

impl RunResult {
    /// Of a run that was not begun because this machine cannot do it.
    pub fn unsupported(profile: &NetProfile, why: String) -> Self {
        Self {
            profile: profile.name.clone(),
            seed: 0,
            outcome: RunStatus::Unsupported { reason: why },
            notes: Vec::new(),
            totals: Totals::default(),
            groups: Vec::new(),
            machines: Vec::new(),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum RunStatus {
    /// To its end.
    Completed,
    /// It was cut with `--max-duration`.
    Truncated,
    /// Somebody interrupted it.
    Interrupted,
    /// A machine cannot do it.
    Unsupported {
        /// What, and why.
        reason: String,
    },
    /// Something failed.
    Failed {
        /// What, and why.
        reason: String,
    },
    /// A server or a process is gone.
    Lost {
        /// Which, and why.
        reason: String,
    },
}

/// What was moved, and how fast.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Totals {
    /// How long the data phase took, in seconds, by the client's clock.
    pub seconds: f64,
    /// Bytes that were sent, by both sides.
    pub sent_bytes: u64,
    /// Bytes that were received, by both sides.
    pub received_bytes: u64,
    /// Bytes per second that were received, by both sides.
    pub throughput: Option<f64>,
    /// Bytes per second that were sent, by both sides.
    pub sent_throughput: Option<f64>,
    /// By how much percent less was received than was sent.
    pub difference_percent: Option<f64>,
    /// Executions of the client's flowops.
    pub operations: u64,
    /// Those per second.
    pub operations_per_second: Option<f64>,
    /// Rounds of the client's transactions.
    pub rounds: u64,
    /// Those per second.
    pub rounds_per_second: Option<f64>,
    /// How long the client's rounds took.
    pub latency: Option<LatencySummary>,
    /// Failures that were passed over, on both sides.
    pub errors: u64,
    /// Datagrams that were waited for in vain, on both sides.
    pub timeouts: u64,
    /// Datagrams that came too late or out of turn, on both sides.
    pub late: u64,
    /// Datagrams that were sent and did not arrive.
    pub lost_datagrams: u64,
}

/// What one group did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct GroupResult {
    /// Its name.
    pub name: String,
    /// How many strands.
    pub strand_count: u32,
    /// Whether they are processes.
    pub processes: bool,
    /// Of its data phase.
    pub totals: Totals,
    /// CPU time and context switches of the client's strands in the data phase.
    pub client_usage: Usage,
    /// Those of the servers' strands.
    pub server_usage: Usage,
    /// Its connections as the client's kernel saw them.
    pub client_connections: ConnectionInfo,
    /// As the servers' kernels saw them.
    pub server_connections: ConnectionInfo,
    /// Datagrams between the sides, if there were any.
    pub datagrams: Option<DatagramCounts>,
    /// Its transactions in order.
    pub transactions: Vec<TransactionResult>,
    /// The client's strands.
    pub strands: Vec<StrandResult>,
}

/// Datagrams, counted where they were sent and where they arrived, also after windows had ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DatagramCounts {
    /// Sent by the client.
    pub client_sent: u64,
    /// Of those, lost.
    pub client_lost: u64,
    /// Sent by servers.
    pub server_sent: u64,
    /// Of those, lost.
    pub server_lost: u64,
}

/// What one transaction did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TransactionResult {
    /// Its name.
    pub name: String,
    /// Whether it is part of the data phase.
    pub is_data_phase: bool,
    /// How long it took, in seconds by the client's clock.
    pub seconds: f64,
    /// Bytes that were sent, by both sides.
    pub sent_bytes: u64,
    /// Bytes that were received, by both sides.
    pub received_bytes: u64,
    /// Bytes per second that were received, by both sides.
    pub throughput: Option<f64>,
    /// Executions of the client's flowops.
    pub operations: u64,
    /// Those per second.
    pub operations_per_second: Option<f64>,
    /// Its rounds on the client; none where only totals were recorded.
    pub rounds: Option<u64>,
    /// How long they took.
    pub latency: Option<LatencySummary>,
    /// How long they took from when the rate wanted them to start.
    pub response: Option<LatencySummary>,
    /// How much later than the rate wanted they started.
    pub lag: Option<LatencySummary>,
    /// Its flowops in order.
    pub flowops: Vec<FlowopResult>,
    /// How long its rounds took, by interval.
    pub intervals: Vec<IntervalLatency>,
    /// Percentiles of each interval by itself, and how they spread over the intervals.
    pub nested: Option<NestedLatency>,
}

/// How long rounds took in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct IntervalLatency {
    /// When the interval began, in seconds after the transaction.
    pub start_seconds: f64,
    /// How long its rounds took.
    pub latency: Option<LatencySummary>,
}

/// What one flowop did, on both sides.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FlowopResult {
    /// Its name on the client.
    pub name: String,
    /// On the client.
    pub client: FlowopSide,
    /// On the servers.
    pub server: Option<FlowopSide>,
    /// By how much percent the receiver has fewer bytes than the sender, in both sides' windows.
    pub difference_percent: Option<f64>,
}

/// What one side did of a flowop.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FlowopSide {
    /// Executions.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
    /// Those per second of this side's own window.
    pub throughput: Option<f64>,
    /// How long executions took.
    pub latency: Option<LatencySummary>,
    /// From when the rate wanted them to start.
    pub response: Option<LatencySummary>,
    /// How much later than the rate wanted they started.
    pub lag: Option<LatencySummary>,
    /// Failures that were passed over, by the system's word for them.
    pub errors: std::collections::BTreeMap<String, u64>,
    /// Datagrams that were waited for in vain.
    pub timeouts: u64,
    /// Datagrams that came too late or out of turn.
    pub late: u64,
    /// CPU time of the executions in nanoseconds, where it was asked for.
    pub cpu_ns: Option<u64>,
    /// Hardware counters over the executions, where they were asked for.
    pub counters: std::collections::BTreeMap<String, u64>,
}

/// What one strand of the client did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StrandResult {
    /// Its number in the group.
    pub strand: u32,
    /// Executions of flowops.
    pub operations: u64,
    /// Rounds of transactions.
    pub rounds: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// The mean time of a round in nanoseconds.
    pub mean_ns: Option<f64>,
    /// The shortest.
    pub min_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
}

/// One machine's part.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MachineResult {
    /// `client`, or a host as the profile names it.
    pub name: String,
    /// Where its control connection was; none for the client.
    pub address: Option<String>,
    /// How its strands were carried out.
    pub executor: String,
    /// CPU time and context switches of its strands in the data phase.
    pub usage: Usage,
    /// That CPU time in percent of one CPU over the data phase.
    pub cpu_percent: Option<f64>,
    /// Bytes that its strands sent in complete messages, from beginning to end.
    pub sent_bytes: u64,
    /// Bytes that its strands received in complete messages, from beginning to end.
    pub received_bytes: u64,
    /// What its kernel counted from beginning to end, whoever's traffic it was.
    #[serde(flatten)]
    pub network: NetworkCounters,
    /// Connections from elsewhere that were dropped.
    pub rejected_connections: u64,
    /// What it did in the data phase, by interval.
    pub progress: Vec<ProgressPoint>,
}

/// What a machine did in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ProgressPoint {
    /// The interval's end in seconds after the data phase began, by the machine's clock.
    pub end_seconds: f64,
    /// Its length in seconds.
    pub seconds: f64,
    /// Bytes sent in it.
    pub sent_bytes: u64,
    /// Bytes received in it.
    pub received_bytes: u64,
    /// Executions of flowops in it.
    pub operations: u64,
}
