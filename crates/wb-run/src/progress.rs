//! What is told while a run goes on.

use wb_model::{AttemptOutcome, CellId, Metric, Purpose};
use wb_plan::TimeEstimate;

/// Something that happened, for whoever watches.
#[derive(Debug, Clone)]
pub enum Progress {
    /// The run begins.
    Started {
        /// Cells that will be measured.
        cells: usize,
        /// Cells that are complete already.
        complete: usize,
        /// Cells that cannot be measured here.
        unsupported: Vec<(CellId, String)>,
        /// How long it takes, about.
        duration: TimeEstimate,
    },
    /// Something is not as one may think, in a sentence.
    Note(String),
    /// Something went wrong that ends nothing.
    Warning(String),
    /// An attempt begins.
    AttemptStarted {
        /// At which cell.
        cell: CellId,
        /// What for.
        purpose: Purpose,
        /// Which sample, from 0.
        sample: u32,
        /// How many samples the cell wants at least.
        min_samples: usize,
        /// How long the cell still takes, about, in seconds.
        cell_seconds: f64,
        /// How long everything still takes, about, in seconds.
        seconds: f64,
    },
    /// An attempt ended.
    AttemptEnded {
        /// At which cell.
        cell: CellId,
        /// What for.
        purpose: Purpose,
        /// Which sample, from 0.
        sample: u32,
        /// How.
        outcome: AttemptOutcome,
        /// Why its values do not count, if so.
        invalid: Option<String>,
        /// The primary metric and its value.
        value: Option<(Metric, f64)>,
        /// What disturbed it.
        disturbances: Vec<String>,
    },
    /// No more samples of a cell are taken.
    CellEnded {
        /// Which.
        cell: CellId,
        /// Why.
        reason: String,
    },
}
