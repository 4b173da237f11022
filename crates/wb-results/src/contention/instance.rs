//! Instances of benches.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Bench;

/// A bench of a sequence: named by its id, or by its position among those of its kind that have none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Instance {
    /// The bench.
    pub bench: Bench,
    /// Its id, or its position from 1.
    pub label: InstanceLabel,
}

/// What tells instances of a bench apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceLabel {
    /// The position among instances without id, from 1.
    Position(u32),
    /// The id.
    Id(String),
}

impl fmt::Display for Instance {
    /// Also the name of the folder: `iocost-qos`, `iocost-qos.2`, `iocost-qos@ID`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bench = self.bench;
        match &self.label {
            InstanceLabel::Position(1) => f.pad(bench.name()),
            InstanceLabel::Position(position) => f.pad(&format!("{bench}.{position}")),
            InstanceLabel::Id(id) => f.pad(&format!("{bench}@{id}")),
        }
    }
}

impl Instance {
    pub fn id(&self) -> Option<&str> {
        match &self.label {
            InstanceLabel::Position(_) => None,
            InstanceLabel::Id(id) => Some(id),
        }
    }
}
