use wb_model::{AttemptOutcome, AttemptPurpose, CellId, Metric};
use wb_plan::TimeEstimate;

/// A progress event of a run.
#[derive(Debug, Clone)]
pub enum Progress {
    Started {
        /// Number of cells with something to measure.
        cells: usize,
        /// Number of cells that are complete already.
        complete: usize,
        /// Cells that cannot be measured here, with the reason.
        unsupported: Vec<(CellId, String)>,
        /// Estimated duration of the cells that have an estimate.
        duration: TimeEstimate,
        unestimated: usize,
    },
    Note(String),
    /// A problem that does not end the run.
    Warning(String),
    AttemptStarted {
        cell: CellId,
        purpose: AttemptPurpose,
        /// From 0.
        sample: u32,
        min_samples: usize,
        /// Estimated remaining time of the cell, in seconds.
        cell_seconds: f64,
        /// Estimated remaining time of the run, in seconds.
        seconds: f64,
    },
    AttemptEnded {
        cell: CellId,
        purpose: AttemptPurpose,
        /// From 0.
        sample: u32,
        outcome: AttemptOutcome,
        /// Reason why its values are invalid, if they are.
        invalid: Option<String>,
        /// The primary metric and its value.
        value: Option<(Metric, f64)>,
        disturbances: Vec<String>,
    },
    /// Of a cell with something to measure.
    CellEnded {
        cell: CellId,
        reason: String,
    },
}
