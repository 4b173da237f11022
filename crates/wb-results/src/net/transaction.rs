//! The result of a transaction, and of its flowops on both sides.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LatencySummary, NestedLatency, PendingRounds, ScheduledExecutions, ScheduledRounds};

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
    pub errors: BTreeMap<String, u64>,
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
    pub counters: BTreeMap<String, u64>,
}
