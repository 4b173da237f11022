//! The result of a run: every figure with the values it was computed from, and no figure where it is undefined.
//!
//! Totals cover the data phase: the transactions that move data, or all if none does. A rate is what the receiver
//! received in its own window, divided by that window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GroupResult, LatencySummary, MachineResult, PendingRounds, ScheduledRounds};

/// The result of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RunResult {
    /// The profile's name.
    pub profile: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// How the run ended.
    pub outcome: RunStatus,
    /// Remarks that matter for interpreting the figures.
    pub notes: Vec<String>,
    /// Totals of the data phase, over all groups.
    pub totals: Totals,
    /// Results by group.
    pub groups: Vec<GroupResult>,
    /// The machines that took part: the client first, then the servers.
    pub machines: Vec<MachineResult>,
}

impl RunResult {
    /// Describes a rate of the data phase that was not reached: of transactions, or else of a flowop.
    pub fn rate_shortfall(&self) -> Option<String> {
        let of_rounds = self.totals.scheduled_rounds.and_then(|scheduled| scheduled.describe_shortfall());
        let transactions = self.groups.iter().flat_map(|group| &group.transactions);
        let mut flowops = transactions.filter(|part| part.is_data_phase).flat_map(|part| &part.flowops);
        of_rounds.or_else(|| flowops.find_map(|flowop| flowop.client.scheduled?.describe_shortfall(&flowop.name)))
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum RunStatus {
    /// It ran to its end.
    Completed,
    /// It was truncated by `--max-duration`.
    Truncated,
    /// The user interrupted it.
    Interrupted,
    /// A machine does not support it.
    Unsupported {
        /// The unsupported feature, and the reason.
        reason: String,
    },
    /// An operation failed.
    Failed {
        /// The failed operation, and the reason.
        reason: String,
    },
    /// A server or a process was lost.
    Lost {
        /// The lost server or process, and the reason.
        reason: String,
    },
}

/// Amounts of data, and rates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Totals {
    /// Duration of the data phase in seconds, by the client's clock.
    pub seconds: f64,
    /// Bytes sent, by both sides.
    pub sent_bytes: u64,
    /// Bytes received, by both sides.
    pub received_bytes: u64,
    /// Bytes received per second, by both sides.
    pub throughput: Option<f64>,
    /// Bytes sent per second, by both sides.
    pub sent_throughput: Option<f64>,
    /// Percentage of the sent bytes that were not received.
    pub difference_percent: Option<f64>,
    /// Executions of the client's flowops.
    pub operations: u64,
    /// Executions per second.
    pub operations_per_second: Option<f64>,
    /// Rounds of the client's transactions.
    pub rounds: u64,
    /// Rounds per second.
    pub rounds_per_second: Option<f64>,
    /// Rounds in which a flowop failed or a datagram was lost: they enter neither the rounds nor the latency.
    pub failed_rounds: u64,
    /// Rounds that were still open at the end of a window.
    pub pending_rounds: Option<PendingRounds>,
    /// Rounds that a rate scheduled, of the transactions that have one.
    #[serde(default)]
    pub scheduled_rounds: Option<ScheduledRounds>,
    /// Durations of the client's rounds from the start that the rate intended, if all transactions have a rate. Rounds that
    /// were open at the end of a window, and due rounds that never began, are included with the time until then.
    pub response: Option<LatencySummary>,
    /// Durations of the client's rounds. Rounds that were open at the end of a window are included likewise.
    pub latency: Option<LatencySummary>,
    /// Failures that were ignored, on both sides.
    pub errors: u64,
    /// Datagrams that did not arrive in time, on both sides.
    pub timeouts: u64,
    /// Datagrams that arrived too late or out of order, on both sides.
    pub late: u64,
    /// Datagrams that were sent and never arrived.
    pub lost_datagrams: u64,
}

impl Totals {
    /// The latency that a user of the service sees: the response time with a rate, else the duration of rounds.
    pub fn headline_latency(&self) -> Option<&LatencySummary> {
        self.response.as_ref().or(self.latency.as_ref())
    }
}
