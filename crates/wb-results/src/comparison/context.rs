//! Differences between the first and the last build that may explain those of the metrics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Differences that may explain those of the metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContextDifferences {
    /// Metadata: the machine, distributions, versions, and values added by the user.
    pub metadata: Vec<ValueChange>,
    /// Programs, compilers and hashes of built programs, by test, with the cells that were measured with them.
    pub programs: Vec<ValueChange>,
    /// Environments of the machines, and the effects of profiles on them.
    pub environment: Vec<SectionDifference>,
}

impl ContextDifferences {
    pub fn is_empty(&self) -> bool {
        self.metadata.is_empty() && self.programs.is_empty() && self.environment.is_empty()
    }
}

/// A section in which machines of two builds differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SectionDifference {
    /// The machines with this difference.
    pub machines: Vec<MachineRef>,
    /// The section: `kernel`, `packages`, `profile`, …
    pub section: String,
    /// The differing values.
    pub changes: Vec<ValueChange>,
}

/// A reference to a machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct MachineRef {
    /// The profile in which it was measured, or `World` for the environment without a profile.
    #[serde(rename = "environment")]
    pub profile: String,
    /// The worker; `None` if both builds have one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// A value that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValueChange {
    /// Its name within the section, empty for the whole section; a text with several lines has one change per line.
    pub name: String,
    /// The value in the first build; `None` if missing. Several values are those of the build's runs.
    pub before: Option<String>,
    /// The value in the last build.
    pub after: Option<String>,
    /// The cells measured with these values; empty if the whole machine differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<String>,
}

impl ValueChange {
    pub fn new(name: &str, before: Option<String>, after: Option<String>) -> Self {
        Self { name: name.to_owned(), before, after, cells: Vec::new() }
    }
}
