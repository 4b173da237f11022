//! The memory of a bench.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

/// The memory of a bench: the machine that is emulated, if any, and what of it the workload gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemoryProfile {
    /// Memory of the emulated machine, in GiB: a power of two. `None`: none is emulated.
    pub profile: Option<u32>,
    /// Memory that is available without the balloon.
    pub avail: Bytes,
    /// What the workload gets.
    pub share: Bytes,
    /// A little less, for sizing: longer runs need more.
    pub target: Bytes,
}

/// How a memory profile of 16 GiB is shown behind a figure: `@16`; empty without one.
pub fn at_profile(profile: Option<u32>) -> String {
    profile.map_or_else(String::new, |profile| format!("@{profile}"))
}
