//! For tests: a worker without a machine. Its programs are functions, its files are in memory, and its time is that of the
//! tokio runtime, which a test may pause, so that a run of hours takes milliseconds.
//!
//! It stands where the pipe to an agent stands otherwise ([`wb_agent::Connection`]); everything above is the real thing.
//! Start with [`FakeAgent`].

mod agent;
mod process;
mod state;

pub use agent::{FakeAgent, facts};
pub use process::FakeProcess;
