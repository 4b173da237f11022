//! `run.json`: what was asked for, each time something was.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{CellId, Facts, ProfileName, WorkerName};

/// The version of the run folder's schema that this program writes.
pub const SCHEMA: u32 = 1;

/// A run folder's head: an entry for each time that it was worked on. Entries are added, never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFile {
    /// The version of the folder's schema.
    pub schema: u32,
    /// The entries, oldest first.
    pub entries: Vec<RunEntry>,
}

impl RunFile {
    /// The last entry that measured in a profile, and its number.
    pub fn last_entry_for(&self, profile: &ProfileName) -> Option<(usize, &RunEntry)> {
        let has_it = |entry: &RunEntry| entry.cells.iter().any(|cell| cell.profile == *profile);
        // Where no machine could be put into it, nobody measured.
        self.entries.iter().enumerate().rev().find(|(_, entry)| !entry.facts.is_empty() && has_it(entry))
    }
}

/// What was asked for at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEntry {
    /// When, for people: RFC 3339 in UTC.
    pub started: String,
    /// By which version of this program.
    pub version: String,
    /// Hash of this program's binary.
    pub program_sha256: String,
    /// As it was typed, secrets masked.
    pub command: Vec<String>,
    /// The plan's name, or the tests as they were typed.
    pub plan: String,
    /// The plan's text, where it came from a file.
    pub plan_text: Option<String>,
    /// How it samples: the table `[sampling]` with every default.
    pub sampling: serde_json::Value,
    /// What decided every random choice.
    pub seed: u64,
    /// The cells it wants, in order.
    pub cells: Vec<CellId>,
    /// What the workers are.
    pub facts: BTreeMap<WorkerName, Facts>,
    /// What was said of hosts: how each is reached and its parameters, as an inventory has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<WorkerName, serde_json::Value>,
    /// What the user said of the run.
    pub metadata: BTreeMap<String, String>,
}
