//! Plan files, test specifications, expansion into cells, selection.
//!
//! A plan defines *what* is measured. It knows nothing of workers, processes or the code of tests: a [`Catalog`]
//! provides the available tests and how unset parameters are resolved from a machine.
//!
//! Start with [`request`] (a requested test, from the command line or a plan file), then [`expand()`] (the resulting
//! cells). [`spec`] and [`mod@file`] parse the two notations; a [`variant`] is a request with some settings changed.

#![forbid(unsafe_code)]

pub mod builtin;
pub mod catalog;
pub mod criteria;
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
pub mod tools;
pub mod variant;
pub mod workers;

pub use catalog::{Catalog, CatalogCell, CellMatrix, MatrixCell};
pub use criteria::RequestCriteria;
pub use expand::{KNOBS, SIDES, WORKER_CPUS, WORKERS, expand};
pub use file::PEERS;
pub use plan::{Cell, Plan, Shortfall, SkippedCell, TimeEstimate};
pub use request::{Request, SpannedParam, split_commas};
pub use sampling::{Sampling, SamplingOrder};
pub use selection::{SelectableCell, Selection, UnmatchedAssignment};
pub use variant::Variant;
pub use workers::PlanWorkers;
