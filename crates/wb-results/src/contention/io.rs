//! Rates and latencies of I/O.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LatencyTable;

/// A kind of I/O latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyKind {
    /// Of reads.
    Read,
    /// Of writes.
    Write,
}

impl LatencyKind {
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// The beginning of its properties and series: `rlat-`.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Read => "rlat-",
            Self::Write => "wlat-",
        }
    }
}

/// Mean I/O rates, in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct IoRates {
    /// Reads.
    pub read: f64,
    /// Writes.
    pub write: f64,
}

/// Latencies of I/O; what never occurred is `None`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct IoLatencies {
    /// Reads.
    pub read: Option<LatencyTable>,
    /// Writes.
    pub write: Option<LatencyTable>,
    /// Requests that completed, but that the kernel did not count: they are in neither table.
    #[serde(default)]
    pub uncounted: u64,
    /// Requests in both tables.
    #[serde(default)]
    pub counted: u64,
}

impl IoLatencies {
    /// The part of the requests that is in neither table.
    pub fn uncounted_part(&self) -> f64 {
        self.uncounted as f64 / self.uncounted.saturating_add(self.counted).max(1) as f64
    }

    pub fn get(&self, kind: LatencyKind) -> Option<&LatencyTable> {
        match kind {
            LatencyKind::Read => self.read.as_ref(),
            LatencyKind::Write => self.write.as_ref(),
        }
    }
}
