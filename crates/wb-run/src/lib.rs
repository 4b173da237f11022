//! Scheduling, sampling rule, attempts, resume.
//!
//! A run carries out a plan on its workers and records everything; it draws nothing and explains nothing.
//! Who may go next is decided in [`schedule`], how one attempt is made in [`attempt`], and what
//! each team does for it in `part`. What has to be the same in all samples of a cell is checked in [`resume`] and [`series`].
//!
//! Start with [`run()`], the story of a run from its start to its end.

pub mod active_cell;
pub mod attempt;
pub mod consistency;
pub mod environment;
pub mod error;
pub mod other_runs;
pub mod preparation;
pub mod progress;
pub mod provenance;
pub mod publish;
pub mod resume;
mod role_sample;
pub mod run;
pub mod schedule;
pub mod user_tools;
pub mod worker_pool;

pub use error::RunError;
pub use progress::Progress;
pub use publish::Publisher;
pub use run::{RunEnd, RunSpec, StoppingRule, run};
pub use worker_pool::{PooledWorker, WorkerPool};
