//! Plan files, test specifications, expansion into cells, selection.
//!
//! A plan says *what* is to be measured. It knows no worker, no process and no test's code: a
//! [`Catalogue`] tells it what tests exist and how the machine decides open values.
//!
//! Start with [`request`] (what was asked for, wherever it was written), then [`expand`] (the cells
//! that follow). [`spec`] and [`file`] are the two ways of writing; a
//! [`variant`] is a request with something changed.

pub mod builtin;
pub mod catalog;
pub mod error;
pub mod expand;
pub mod file;
pub mod masking;
pub mod plan;
mod programs;
pub mod request;
mod role_assignment;
pub mod sampling;
pub mod selection;
pub mod spec;
pub mod suggestion;
pub mod tools;
pub mod variant;
pub mod workers;

pub use catalog::Catalog;
pub use error::PlanError;
pub use expand::{KNOBS, SIDES, WORKER_CPUS, WORKERS, expand};
pub use plan::{Cell, Plan, Shortfall, SkippedCell, TimeEstimate};
pub use request::{Request, SourceText, SpannedParam, split_commas};
pub use sampling::{Sampling, SamplingOrder};
pub use selection::Selection;
pub use variant::Variant;
pub use workers::PlanWorkers;
