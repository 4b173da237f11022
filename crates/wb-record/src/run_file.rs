//! The run file, `run.json`: the invocations of the program that worked on the run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{CellId, Facts, ProfileName, WorkerName};

/// The schema version of run folders that this program writes.
pub const SCHEMA: u32 = 1;

/// The run file: the invocations of the program that worked on the run. Invocations are added, never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFile {
    /// The schema version of the run folder.
    pub schema: u32,
    /// The invocations, oldest first.
    pub invocations: Vec<Invocation>,
    /// The command that prepares the machines for the first invocation; absent once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparation: Option<Preparation>,
}

/// A command that is preparing machines, or was while it ended: what it is to measure is known when they are prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Preparation {
    /// Its start time, for people: RFC 3339 in UTC.
    pub started: String,
    /// The version of this program.
    pub version: String,
    /// The command line, with secrets masked.
    pub command: Vec<String>,
    /// The plan's name, or the tests as given on the command line.
    pub plan: String,
    /// The user's metadata of the run.
    pub metadata: BTreeMap<String, String>,
}

impl RunFile {
    /// The last invocation that measured under a profile, and its number.
    pub fn last_invocation_for(&self, profile: &ProfileName) -> Option<(usize, &Invocation)> {
        let has_profile = |invocation: &Invocation| invocation.cells.iter().any(|cell| cell.profile == *profile);
        // Without facts, no machine could be put into the profile, and nothing was measured.
        self.invocations
            .iter()
            .enumerate()
            .rev()
            .find(|(_, invocation)| !invocation.facts.is_empty() && has_profile(invocation))
    }
}

/// One invocation of the program that worked on the run; one that measured in several profiles is in the file once for
/// each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Invocation {
    /// Its start time, for people: RFC 3339 in UTC.
    pub started: String,
    /// The version of this program.
    pub version: String,
    /// The hash of this program's binary.
    pub program_sha256: String,
    /// That of the binary that measured, `weighbridge-agent`; in runs before it was split off, this program itself did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_sha256: Option<String>,
    /// The command line, with secrets masked.
    pub command: Vec<String>,
    /// The plan's name, or the tests as given on the command line.
    pub plan: String,
    /// The plan's text, if it came from a file.
    pub plan_text: Option<String>,
    /// The sampling parameters: the table `[sampling]` with all defaults.
    pub sampling: serde_json::Value,
    /// The seed of all random choices.
    pub seed: u64,
    /// The requested cells, in order.
    pub cells: Vec<CellId>,
    /// The facts of the workers.
    pub facts: BTreeMap<WorkerName, Facts>,
    /// The hosts: how each is reached and its parameters, as in an inventory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<WorkerName, serde_json::Value>,
    /// The user's metadata of the run.
    pub metadata: BTreeMap<String, String>,
}
