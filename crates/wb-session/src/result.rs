//! Results of a session.

use wb_results::Study;
use wb_run::RunEnd;

use crate::publishing::PublishState;

/// Result of a session that was not ended by an error.
#[derive(Debug)]
pub struct MeasureResult {
    pub end: RunEnd,
    /// The study of everything in the folder.
    pub study: Study,
    pub published: PublishState,
    /// Number of cells that are incomplete, and known to be.
    pub expected_failures: usize,
    /// Whether a profile could not be applied or reverted.
    pub(crate) has_failed_profiles: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStatus {
    /// Everything is measured and published as requested.
    Complete,
    Incomplete,
    Interrupted,
}

impl MeasureResult {
    /// Number of cells that are incomplete or failed.
    pub fn shortfall_count(&self) -> usize {
        self.study.cells.iter().filter(|cell| cell.outcome.is_incomplete()).count()
    }

    pub fn status(&self) -> SessionStatus {
        // A cell that did not converge is no shortfall: its interval shows the precision. One with fewer samples than
        // its rule requires is.
        let falls_short = self.shortfall_count() > self.expected_failures || self.has_failed_profiles;
        match self.end {
            RunEnd::Interrupted => SessionStatus::Interrupted,
            _ if falls_short || self.published == PublishState::Incomplete => SessionStatus::Incomplete,
            _ => SessionStatus::Complete,
        }
    }
}
