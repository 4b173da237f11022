//! A simulated worker for tests: its programs are functions, its files are in memory, and its clock is that of the
//! tokio runtime, which a test may pause, so that a run of hours takes milliseconds.
//!
//! It replaces the pipe to an agent ([`wb_agent::Connection`]); all layers above are the real ones. Start with
//! [`FakeAgent`].

#![forbid(unsafe_code)]

mod agent;
mod process;
mod state;

pub use agent::{FakeAgent, facts};
pub use process::FakeProcess;
