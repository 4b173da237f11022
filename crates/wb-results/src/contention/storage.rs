//! What `storage` found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HashdParameters, IoLatencies, IoRates, MemoryProfile, ResourceUse};

/// The footprint that a device supports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageAnswer {
    /// Memory offloading factor: footprint / memory.
    pub mof: f64,
    /// Whether it is a lower bound only: the largest footprint that could be tried was supported.
    #[serde(default)]
    pub is_lower_bound: bool,
    /// The memory.
    pub memory: MemoryProfile,
    /// The parameters of hashd.
    pub hashd: HashdParameters,
    /// Memory that hashd used, in bytes: mean over the loops.
    pub usage: f64,
    /// Its standard deviation.
    pub usage_stdev: f64,
    /// Footprint, in bytes: mean over the loops.
    pub size: f64,
    /// Its standard deviation.
    pub size_stdev: f64,
    /// Number of loops.
    pub loops: u64,
    /// I/O with the final footprints.
    pub final_io: IoRates,
    /// I/O over the whole measurement.
    pub all_io: IoRates,
    /// Latencies of I/O over the whole measurement.
    pub latency: IoLatencies,
    /// Part of the reports that is missing.
    pub missing: f64,
    /// What the machine used; `None` in results of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceUse>,
}
