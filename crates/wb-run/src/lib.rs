//! Executes runs: scheduling, sampling, attempts, resume.
//!
//! A run executes a plan on its workers and records everything; rendering and interpretation are done elsewhere. The
//! order of samples is decided in [`schedule`], an attempt is made in [`attempt`], and the share of each role
//! assignment in `role_sample`; `cleanup` has what cleaning up finds. What must be the same for all samples of a cell is
//! checked in [`resume`] and [`consistency`].
//!
//! Start with [`run()`], a run from start to end.

#![forbid(unsafe_code)]

pub mod active_cell;
pub mod attempt;
mod cleanup;
pub mod consistency;
pub mod environment;
pub mod error;
mod knob_trial;
mod knobs;
pub mod other_runs;
pub mod preparation;
pub mod progress;
pub mod provenance;
pub mod publish;
pub mod resolved_values;
pub mod resume;
mod role_sample;
pub mod run;
pub mod schedule;
pub mod user_tools;
pub mod worker_pool;

pub use error::RunError;
pub use progress::Progress;
pub use publish::Publisher;
pub use run::{InputRecorder, RunEnd, RunSpec, StoppingDecision, StoppingRule, run};
pub use worker_pool::{PooledWorker, WorkerPool};
