//! What changing a machine did, and what ending groups and reverting their changes found.

use serde::{Deserialize, Serialize};
use wb_knobs::tune::KnobResult;
use wb_sys::undo::RevertOutcome;

use super::Fault;

/// Result of setting knobs, to be recorded: one for each knob and target.
#[must_use = "what setting knobs did must be recorded"]
// Not `Clone`: it goes into one record, that of the attempt or the problems of its cell.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TuneReport(pub Vec<KnobResult>);

/// Result of tearing down a group, to be recorded.
#[must_use = "what a teardown found must be recorded"]
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeardownReport {
    /// Ids of the processes that were alive and were sent SIGKILL.
    pub killed: Vec<u32>,
    /// Ids of those that survived SIGKILL because they hang inside the kernel.
    pub unkillable: Vec<u32>,
    /// Changes made for the group and the outcome of reverting each, latest first.
    pub reverted: Vec<RevertedChange>,
    /// What failed of the group's cleanup commands.
    #[serde(default)]
    pub cleanup_errors: Vec<String>,
    /// Why some changes could not be reverted.
    #[serde(rename = "fault")]
    pub revert_error: Option<String>,
    /// Why the scratch folder could not be removed.
    #[serde(rename = "folder")]
    pub folder_error: Option<Fault>,
}

impl TeardownReport {
    /// The report of a group that had neither processes nor changes.
    pub fn clean() -> Self {
        Self {
            killed: Vec::new(),
            unkillable: Vec::new(),
            reverted: Vec::new(),
            cleanup_errors: Vec::new(),
            revert_error: None,
            folder_error: None,
        }
    }

    /// Converts the report of a group without changes, where only what is left on the machine matters.
    ///
    /// # Errors
    /// The first thing that is left.
    pub fn into_result(self) -> Result<(), Fault> {
        let Self { killed: _, unkillable, reverted: _, cleanup_errors, revert_error, folder_error } = self;
        let revert_error = cleanup_errors.into_iter().next().or(revert_error);
        let process = unkillable.first().map(|pid| Fault::Unkillable { pid: *pid });
        process.or(revert_error.map(|reason| Fault::Refused { why: reason })).or(folder_error).map_or(Ok(()), Err)
    }
}

/// A command that undoes what a group's processes do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CleanupCommand {
    /// Its arguments, starting with the program.
    pub argv: Vec<String>,
    /// Whether its failure is of no interest, as of a command that stops what may have ended already.
    pub may_fail: bool,
}

/// A change of a group and the outcome of reverting it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertedChange {
    /// Description of the changed setting, for people.
    pub description: String,
    #[serde(flatten)]
    pub outcome: RevertOutcome,
}

/// What was recovered after agents were killed without reverting their changes.
#[must_use = "changes that killed agents left must be reported"]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecoveryReport {
    /// Changes that were reverted, latest first.
    pub reverted: Vec<RevertedChange>,
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
        let Self { what, reason, is_locked: _ } = self;
        if what.is_empty() { f.write_str(reason) } else { write!(f, "{reason}; still changed: {}", what.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_group_leaves_is_an_error() {
        let refused = |reason: &str| Fault::Refused { why: reason.to_owned() };
        let result = |report: TeardownReport| report.into_result();
        assert_eq!(result(TeardownReport { killed: vec![7], ..TeardownReport::clean() }), Ok(()));
        assert_eq!(
            result(TeardownReport { unkillable: vec![7], ..TeardownReport::clean() }),
            Err(Fault::Unkillable { pid: 7 })
        );
        let report = TeardownReport { revert_error: Some("changed".to_owned()), ..TeardownReport::clean() };
        assert_eq!(result(report), Err(refused("changed")));
        let report = TeardownReport { folder_error: Some(refused("busy")), ..TeardownReport::clean() };
        assert_eq!(result(report), Err(refused("busy")));
    }
}
