//! Where and how a measured process runs: set by system calls before it starts, verified after.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Transparent huge pages of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HugePages {
    /// As the system is set.
    #[default]
    Inherit,
    /// Asked for, whatever the system's default.
    Always,
    /// Switched off for the process.
    Never,
}

/// Address-space layout randomisation of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Aslr {
    /// As the system is set.
    #[default]
    Inherit,
    /// Off: the same addresses in every sample.
    Off,
}

/// Where and how a process runs. Empty lists leave the system's choice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Placement {
    /// The CPUs it may run on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// The NUMA nodes its memory must come from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memory_nodes: Vec<u32>,
    /// Its transparent huge pages.
    pub huge_pages: HugePages,
    /// Its address-space randomisation.
    pub aslr: Aslr,
}
