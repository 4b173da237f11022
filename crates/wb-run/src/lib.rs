//! Scheduling, sampling rule, attempts, resume.
//!
//! A run carries out a plan on its workers and records everything; it draws nothing and explains nothing.
//! Who may go next is decided in [`schedule`], how one attempt is made in [`attempt`], and what
//! each team does for it in `part`. What has to be the same in all samples of a cell is checked in [`resume`] and [`series`].
//!
//! Start with [`run()`], the story of a run from its start to its end.

pub mod attempt;
pub mod cells;
pub mod crew;
pub mod environment;
pub mod error;
pub mod other_runs;
mod part;
pub mod progress;
pub mod provenance;
pub mod publish;
pub mod ready;
pub mod resume;
pub mod run;
pub mod schedule;
pub mod series;
pub mod tools;

pub use crew::{Crew, Member};
pub use error::RunError;
pub use progress::Progress;
pub use publish::Publisher;
pub use run::{Job, Referee, RunEnd, run};
