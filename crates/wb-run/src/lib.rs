//! Scheduling, sampling rule, attempts, resume.
//!
//! A run carries out a plan on a worker and records everything; it draws nothing and explains nothing.
//! Who may go next is decided in [`schedule`], how one attempt is made in [`attempt`].
//!
//! Start with [`run()`], the story of a run from its start to its end.

pub mod attempt;
pub mod cells;
pub mod environment;
pub mod error;
pub mod progress;
pub mod provenance;
pub mod resume;
pub mod run;
pub mod schedule;
pub mod tools;

pub use error::RunError;
pub use progress::Progress;
pub use run::{Job, Referee, RunEnd, run};
