//! What an agent found when it ended groups and reverted changes.

use serde::{Deserialize, Serialize};
use wb_sys::undo::RevertOutcome;

/// Result of tearing down a group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TeardownReport {
    /// Processes that were alive and were killed.
    pub killed: Vec<u32>,
    /// Processes that survived SIGKILL because they hang inside the kernel.
    pub unkillable: Vec<u32>,
    /// Changes made for the group and the outcome of reverting each, latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverted: Vec<RestoredChange>,
    /// Why some changes could not be reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A change of a group and the outcome of reverting it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredChange {
    /// Description of the changed setting, for people.
    pub description: String,
    /// Outcome of reverting it.
    #[serde(flatten)]
    pub outcome: RevertOutcome,
}

/// What was recovered after agents were killed without reverting their changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecoveryReport {
    /// Changes that were reverted, latest first.
    pub reverted: Vec<RestoredChange>,
    /// Changes still in effect; none if everything was reverted.
    pub unreverted: Option<UnrevertedChanges>,
    /// Why it is unknown whether changes remain: the undo log belongs to root, and the agent runs unprivileged.
    pub fault: Option<String>,
}

/// Changes of a run that are still in effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnrevertedChanges {
    /// Descriptions of the changes: files, settings, and commands by name; empty if the log cannot be read.
    pub what: Vec<String>,
    /// Why they were not reverted.
    pub reason: String,
    /// Whether another run holds the undo log.
    pub is_locked: bool,
}

impl UnrevertedChanges {
    /// Advice for the user.
    pub fn help(&self) -> &'static str {
        if self.is_locked {
            "wait for it to finish or stop it: its changes are reverted when it ends"
        } else {
            "`weighbridge profile revert`, as root and with `--hosts` for another machine, tries again to revert them"
        }
    }
}

impl std::fmt::Display for UnrevertedChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, reason: why, is_locked: _ } = self;
        if what.is_empty() { f.write_str(why) } else { write!(f, "{why}; still changed: {}", what.join(", ")) }
    }
}
