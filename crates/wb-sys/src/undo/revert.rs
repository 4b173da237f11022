//! The error of a revert that was only partly successful.

use super::log::UndoError;
use super::record::{Change, RevertOutcome};

/// Some changes could not be reverted: they stay in the log, and the next revert tries again.
#[derive(Debug)]
pub struct RevertError {
    /// The outcomes of the other changes, the last change first.
    pub undone: Vec<(Change, RevertOutcome)>,
    /// The changes that could not be reverted, and why; at least one.
    pub failed: Vec<(Change, UndoError)>,
}

impl std::error::Error for RevertError {}

impl std::fmt::Display for RevertError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reasons: Vec<String> = self.failed.iter().map(|(_, reason)| reason.to_string()).collect();
        write!(f, "not everything was restored: {}", reasons.join("; "))
    }
}
