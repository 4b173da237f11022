use wb_agent::WorkerError;
use wb_model::{CellId, DefinitionKey, WorkerName};
use wb_record::RecordError;

/// Error that ends a run. Everything recorded so far is kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error(transparent)]
    Provision(#[from] wb_profile::provision::ProvisionError),
    /// The results cannot be written for publishing.
    #[error(transparent)]
    Study(#[from] wb_study::StudyError),
    #[error("cannot record the sampling of the plan: {0}")]
    Sampling(#[source] serde_json::Error),
    /// No machine offers this value of a knob.
    #[error("knob `{knob}` on {host}: {reason}")]
    UnknownKnobValue {
        /// The knob, with its target if one is named.
        knob: String,
        /// The machine that was queried first.
        host: WorkerName,
        reason: String,
    },
    #[error("the worker `{worker}` is lost: {reason}")]
    Lost { worker: WorkerName, reason: String },
    #[error("`{cell}` was measured in this folder with other parameters: {}", differences.join("; "))]
    Redefined {
        cell: Box<CellId>,
        before: DefinitionKey,
        /// Each parameter that differs, with both values.
        differences: Vec<String>,
    },
    #[error("`{cell}` was measured in this folder with another {item} ({before}, now {now})")]
    Changed {
        cell: Box<CellId>,
        item: String,
        /// The start of its hash there.
        before: String,
        /// The start of its hash now.
        now: String,
    },
    #[error("`{cell}` was measured in this folder by {before}; now requested on {now}")]
    OtherWorkers { cell: Box<CellId>, before: String, now: String },
    #[error("`{cell}` was measured in this folder on another machine named `{worker}`: {before}, now {now}")]
    OtherMachine { cell: Box<CellId>, worker: WorkerName, before: String, now: String },
    /// A machine has changed, so that another cell would be measured beside the one with samples.
    #[error(
        "`{worker}` is not as it was when this folder was measured ({}): `{cell}` would be continued as `{in_its_place}`",
        differences.join("; ")
    )]
    ChangedMachine {
        worker: WorkerName,
        /// Each property of its machine that differs, with both values.
        differences: Vec<String>,
        cell: Box<CellId>,
        /// The cell that the same request resolves to now.
        in_its_place: Box<CellId>,
    },
    /// Two workers are on one machine: their samples would disturb each other and count as those of two machines.
    #[error("`{worker}` and `{other}` are the same machine")]
    SameMachine { worker: WorkerName, other: WorkerName },
    #[error("`{cell}` has open values: {open}")]
    OpenValues { cell: Box<CellId>, open: String },
}
