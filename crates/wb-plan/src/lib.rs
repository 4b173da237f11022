//! Plan files, test specifications, expansion into cells, selection.
//!
//! A plan says *what* is to be measured. It knows no worker, no process and no test's code: a
//! [`Catalogue`] tells it what tests exist and how the machine decides open values.
//!
//! Start with [`request`] (what was asked for, wherever it was written), then [`expand`] (the cells
//! that follow). [`spec`] and [`file`] are the two ways of writing; a
//! [`variant`] is a request with something changed.

pub mod builtin;
mod cast;
pub mod catalogue;
pub mod error;
pub mod expand;
pub mod file;
pub mod masked;
pub mod nearest;
pub mod plan;
mod programs;
pub mod request;
pub mod sampling;
pub mod select;
pub mod spec;
pub mod tools;
pub mod variant;
pub mod workers;

pub use catalogue::Catalogue;
pub use error::PlanError;
pub use expand::{KNOBS, SIDES, WORKER_CPUS, WORKERS, expand};
pub use plan::{Cell, Duration, LeftOut, Plan, Shortfall};
pub use request::{Given, Request, Source, comma_parts};
pub use sampling::{Order, Sampling};
pub use select::Selection;
pub use variant::Variant;
pub use workers::Workers;
