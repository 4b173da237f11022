//! What is reported where only a part could be put back.

use super::log::UndoError;
use super::record::{Change, RevertOutcome};

/// Some changes could not be put back: they stay in the log, and the next one to revert tries again.
#[derive(Debug)]
pub struct RevertError {
    /// What was put back all the same, or left, the last change first.
    pub undone: Vec<(Change, RevertOutcome)>,
    /// The changes that could not be put back, and why; at least one.
    pub failed: Vec<(Change, UndoError)>,
}

impl std::error::Error for RevertError {}

impl std::fmt::Display for RevertError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reasons: Vec<String> = self.failed.iter().map(|(_, why)| why.to_string()).collect();
        write!(f, "not everything is as it was: {}", reasons.join("; "))
    }
}
