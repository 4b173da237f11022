//! Executes the strands of a run and counts what they move.
//!
//! Start with [`work`] (what a site is told and tells), then [`site`] (who drives), [`strand`] (what a strand does
//! next) and [`hand`] and [`event`] (on which threads). [`tally`] is what is counted, [`times`] how long things took.

pub mod clock;
mod descriptors;
pub mod engine_set;
mod event_loop;
mod executor;
pub(crate) mod hdr;
mod interrupt;
mod latencies;
pub mod latency;
pub mod local;
mod perf_counters;
mod plan;
pub mod protocol;
mod random;
pub mod raw_log;
pub mod report;
mod strand;
pub mod tally;
pub mod usage;
mod wait;

pub use perf_counters::{DEFAULT_EVENTS, SUPPORTED_EVENTS, probe};
pub use strand::files;
