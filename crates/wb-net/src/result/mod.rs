//! The result of a run: every figure with the values it was computed from, and no figure where it is undefined.
//!
//! Totals cover the data phase: the transactions that move data, or all if none does. A rate is what the receiver
//! received in its own window, divided by that window.

mod assembly;
mod lack_of_success;
mod latency;
mod machine;
mod nested;
mod progress;
mod uncounted;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::usage::Usage;
use crate::language::NetProfile;
use crate::netstat::NetworkCounters;
use crate::transport::ConnectionInfo;

pub use latency::{LatencySummary, Percentiles};
pub(crate) use machine::data_seconds;
pub use nested::{NestedLatency, NestedRow};
pub use progress::{CLOCK_TOLERANCE, SentByInterval};

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
    /// The result of a run that was not started because this machine does not support it.
    pub fn unsupported(profile: &NetProfile, reason: String) -> Self {
        Self {
            profile: profile.name.clone(),
            seed: 0,
            outcome: RunStatus::Unsupported { reason },
            notes: Vec::new(),
            totals: Totals::default(),
            groups: Vec::new(),
            machines: Vec::new(),
        }
    }

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

/// The result of one transaction.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TransactionResult {
    /// Name of the transaction.
    pub name: String,
    /// Whether it is part of the data phase.
    pub is_data_phase: bool,
    /// Its duration in seconds, by the client's clock.
    pub seconds: f64,
    /// Bytes sent, by both sides.
    pub sent_bytes: u64,
    /// Bytes received, by both sides.
    pub received_bytes: u64,
    /// Bytes received per second, by both sides.
    pub throughput: Option<f64>,
    /// Executions of the client's flowops.
    pub operations: u64,
    /// Executions per second.
    pub operations_per_second: Option<f64>,
    /// Rounds on the client; none if only totals were recorded.
    pub rounds: Option<u64>,
    /// Rounds in which a flowop failed or a datagram was lost: they enter neither the rounds nor the latency.
    pub failed_rounds: u64,
    /// Rounds that were still open at the end of the window.
    pub pending_rounds: Option<PendingRounds>,
    /// Rounds that the rate scheduled, if it has one.
    #[serde(default)]
    pub scheduled_rounds: Option<ScheduledRounds>,
    /// Durations of rounds. Those that were open at the end of the window are included with the time until then.
    pub latency: Option<LatencySummary>,
    /// Durations of rounds, from the start that the rate intended. Rounds that were open at the end of the window, and due
    /// rounds that never began, are included likewise.
    pub response: Option<LatencySummary>,
    /// Delays of the start of rounds behind the start that the rate intended; due rounds that never began are included
    /// likewise.
    pub lag: Option<LatencySummary>,
    /// Its flowops, in order.
    pub flowops: Vec<FlowopResult>,
    /// Durations of rounds, by interval.
    pub intervals: Vec<IntervalLatency>,
    /// Percentiles of each interval, and their distribution over the intervals.
    pub nested: Option<NestedLatency>,
}

/// Rounds that were open when their window ended. Of each it is known that it took at least as long as it had been open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PendingRounds {
    /// Their number.
    pub count: u64,
    /// How long the oldest had been open, in nanoseconds.
    pub at_least_ns: u64,
}

/// Rounds that a rate scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ScheduledRounds {
    /// Number of rounds that were due in the window.
    pub due: u64,
    /// Number of those that never began.
    pub not_started: u64,
    /// How long the oldest of those had been due, in nanoseconds; 0 without one.
    pub at_least_ns: u64,
    /// Of a number of iterations: rounds that began after the period of the last was over.
    #[serde(default)]
    pub overdue: u64,
}

impl ScheduledRounds {
    /// Describes a rate that was not reached, if more than a hundredth of the due operations never began.
    pub fn describe_shortfall(&self) -> Option<String> {
        let Self { due, not_started, at_least_ns, overdue } = *self;
        let milliseconds = at_least_ns as f64 / 1e6;
        if latency::is_notable_share(not_started, due) {
            return Some(format!(
                "the rate was not reached: {not_started} of {due} rounds that were due never began, the oldest for \
                 {milliseconds:.1} ms; response times include them with the time since they were due"
            ));
        }
        latency::is_notable_share(overdue, due)
            .then(|| format!("the rate was not reached: {overdue} of {due} rounds began after all had been due"))
    }
}

/// Executions of a flowop that its rate scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ScheduledExecutions {
    /// Number of executions that were due.
    pub due: u64,
    /// Number of those that never began, or began after all had been due.
    pub missed: u64,
}

impl ScheduledExecutions {
    /// As [`ScheduledRounds::describe_shortfall`].
    pub fn describe_shortfall(&self, flowop: &str) -> Option<String> {
        let Self { due, missed } = *self;
        latency::is_notable_share(missed, due).then(|| {
            format!("the rate was not reached: {missed} of {due} executions of `{flowop}` did not begin in time")
        })
    }
}

/// Durations of rounds in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct IntervalLatency {
    /// Start of the interval, in seconds since the start of the transaction.
    pub start_seconds: f64,
    /// Durations of the rounds in it.
    pub latency: Option<LatencySummary>,
}

/// The result of one flowop, on both sides.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FlowopResult {
    /// Name of the flowop on the client.
    pub name: String,
    /// Figures of the client.
    pub client: FlowopSide,
    /// Figures of the servers.
    pub server: Option<FlowopSide>,
    /// Percentage of the sender's bytes that the receiver did not receive, in both sides' windows.
    pub difference_percent: Option<f64>,
}

/// Figures of a flowop on one side.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FlowopSide {
    /// Number of executions.
    pub count: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Bytes per second of this side's own window.
    pub throughput: Option<f64>,
    /// Durations of executions.
    pub latency: Option<LatencySummary>,
    /// Durations of executions, from the start that the rate intended.
    pub response: Option<LatencySummary>,
    /// Delays of the start of executions behind the start that the rate intended.
    pub lag: Option<LatencySummary>,
    /// What the rate scheduled, on the client.
    #[serde(default)]
    pub scheduled: Option<ScheduledExecutions>,
    /// Ignored failures, by the system's error message.
    pub errors: std::collections::BTreeMap<String, u64>,
    /// Datagrams that did not arrive in time.
    pub timeouts: u64,
    /// Datagrams that arrived too late or out of order.
    pub late: u64,
    /// Datagrams of a stream that arrived after one that was sent later.
    pub reordered: u64,
    /// Interarrival jitter of datagrams in nanoseconds (RFC 3550) at the end of the window; the mean of connections.
    pub jitter_ns: Option<f64>,
    /// CPU time of the executions in nanoseconds, if it was measured.
    pub cpu_ns: Option<u64>,
    /// Performance counters over the executions, if any were measured.
    pub counters: std::collections::BTreeMap<String, u64>,
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

/// The result of one machine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MachineResult {
    /// `client`, or a host as named in the profile.
    pub name: String,
    /// Address of its control connection; none for the client.
    pub address: Option<String>,
    /// How its strands were executed.
    pub executor: String,
    /// CPU time and context switches of its strands in the data phase.
    pub usage: Usage,
    /// CPU time in percent of one CPU over the data phase.
    pub cpu_percent: Option<f64>,
    /// Bytes that its strands sent in complete messages, over the whole run.
    pub sent_bytes: u64,
    /// Bytes that its strands received in complete messages, over the whole run.
    pub received_bytes: u64,
    /// Counters of its kernel over the whole run, including traffic of other programs.
    #[serde(flatten)]
    pub network: NetworkCounters,
    /// Unexpected connections that were dropped.
    pub rejected_connections: u64,
    /// Its progress in the data phase, by interval.
    pub progress: Vec<ProgressPoint>,
}

/// What a machine moved in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ProgressPoint {
    /// End of the interval in seconds since the start of the data phase, by the machine's clock.
    pub end_seconds: f64,
    /// Length of the interval in seconds.
    pub seconds: f64,
    /// Bytes sent in the interval.
    pub sent_bytes: u64,
    /// Bytes received in the interval.
    pub received_bytes: u64,
    /// Executions of flowops in the interval.
    pub operations: u64,
}
