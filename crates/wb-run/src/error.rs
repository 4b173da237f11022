//! Why a run could not go on.

use wb_agent::WorkerError;
use wb_model::{CellId, DefinitionKey, WorkerName};
use wb_record::RecordError;

/// Why a run could not go on. Everything recorded until then is kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run folder.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The worker.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// Hosts could not be provisioned.
    #[error(transparent)]
    Provision(#[from] wb_profile::provision::ProvisionError),
    /// What was measured cannot be told for whoever publishes it.
    #[error(transparent)]
    Study(#[from] wb_study::StudyError),
    /// How samples are taken has no form in JSON.
    #[error("cannot record the sampling of the plan: {0}")]
    Sampling(#[source] serde_json::Error),
    /// The worker went away while it measured.
    #[error("the worker `{worker}` is lost: {why}")]
    Lost {
        /// Which.
        worker: WorkerName,
        /// How that showed.
        why: String,
    },
    /// The folder has a cell of the same name that was defined otherwise.
    #[error("`{cell}` was measured in this folder with other parameters: {}", differences.join("; "))]
    Redefined {
        /// Which.
        cell: Box<CellId>,
        /// Its key there.
        before: DefinitionKey,
        /// Each parameter that differs, with both values.
        differences: Vec<String>,
    },
    /// The definition, a file of it or a program is not the one that was measured in this folder.
    #[error("`{cell}` was measured in this folder with another {what} ({before}, now {now})")]
    Changed {
        /// Which cell.
        cell: Box<CellId>,
        /// What changed.
        what: String,
        /// The start of its hash there.
        before: String,
        /// The start of its hash now.
        now: String,
    },
    /// A cell that others have measured.
    #[error("`{cell}` was measured in this folder by {before}, and is to be by {now}")]
    OtherWorkers {
        /// Which cell.
        cell: Box<CellId>,
        /// Who has.
        before: String,
        /// Who is to.
        now: String,
    },
    /// A cell that was measured on another machine of the same name.
    #[error("`{cell}` was measured in this folder on another machine than `{worker}` is: {before}, now {now}")]
    OtherMachine {
        /// Which cell.
        cell: Box<CellId>,
        /// The worker.
        worker: WorkerName,
        /// What it was.
        before: String,
        /// What it is.
        now: String,
    },
    /// Two workers are on one machine: their samples would disturb each other and count as those of two.
    #[error("`{worker}` and `{other}` are the same machine")]
    SameMachine {
        /// One of its names.
        worker: WorkerName,
        /// The other.
        other: WorkerName,
    },
    /// A cell whose parameters are not all known.
    #[error("`{cell}` has open values: {open}")]
    Open {
        /// Which.
        cell: Box<CellId>,
        /// The parameters.
        open: String,
    },
}
