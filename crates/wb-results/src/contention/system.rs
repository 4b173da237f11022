//! The machine that a bench measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use super::{IocostParameters, MemoryProfile, Passive, TimeScale};

/// What the header of a result states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SystemInfo {
    /// Release of the kernel.
    pub kernel: String,
    /// Number of CPUs.
    pub nr_cpus: u32,
    /// Size of the memory.
    pub memory: Bytes,
    /// Size of the swap areas.
    pub swap: Bytes,
    /// `vm.swappiness`.
    pub swappiness: u32,
    /// Whether zswap is enabled.
    pub zswap: bool,
    /// The memory that benches may use; `None` until it is known, or without a memory profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<MemoryProfile>,
    /// Settings that were left as they are.
    #[serde(default)]
    pub passive: Passive,
    /// The storage device.
    pub device: Device,
    /// The parameters of io.cost at the beginning, if it was enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iocost: Option<IocostParameters>,
    /// By how much durations were shortened for a trial, whose figures mean nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_scale: Option<TimeScale>,
    /// Requirements that were not met (`--force`), by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed_requirements: Vec<String>,
    /// Of a merged result: in what the machines of other sources differ from this one, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
}

/// A storage device and how the kernel drives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Device {
    /// Its name: `nvme0n1`.
    pub name: String,
    /// Its number: `259:5`.
    pub number: String,
    /// Its model.
    pub model: String,
    /// Version of its firmware; empty if unknown.
    pub firmware: String,
    /// Its capacity.
    pub size: Bytes,
    /// The I/O scheduler.
    pub scheduler: String,
    /// Whether writeback throttling is enabled.
    pub wbt: bool,
    /// Whether another controller of I/O than io.cost is active.
    pub other_controller: bool,
}
