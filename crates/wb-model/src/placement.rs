//! Placement of a measured process: set by system calls before it starts, verified afterwards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Transparent huge pages of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HugePages {
    /// The system's setting.
    #[default]
    Inherit,
    /// Enabled for the process, whatever the system's setting; without them a sample does not count, where the test
    /// sees that.
    Always,
    /// As `always`, but a sample without them counts.
    Try,
    /// Disabled for the process.
    Never,
}

impl HugePages {
    pub fn are_requested(self) -> bool {
        matches!(self, Self::Always | Self::Try)
    }
}

/// Address-space layout randomisation of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Aslr {
    /// The system's setting.
    #[default]
    Inherit,
    /// Disabled: the same addresses in every sample.
    Off,
}

/// Placement of a process. Empty lists leave the choice to the system.
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

impl Placement {
    /// The names of the parameters that make up a placement.
    pub const PARAMS: [&str; 4] = ["cpus", "memory-nodes", "huge-pages", "aslr"];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Param;

    #[test]
    fn every_field_is_a_parameter() {
        let fields: BTreeSet<String> = Param::from_schema::<Placement>().into_iter().map(|param| param.name).collect();
        assert_eq!(fields, Placement::PARAMS.map(str::to_owned).into());
    }
}
