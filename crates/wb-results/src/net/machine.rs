//! The part of one machine in a result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NetworkCounters, Usage};

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
