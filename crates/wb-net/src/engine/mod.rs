//! Executes the strands of a run and counts what they move.
//!
//! Start with [`protocol`] (the commands and events of an engine), then [`local`] (the engine of one process),
//! [`strand`] (the next step of a strand), and [`executor`] and [`event_loop`] (the threads). [`tally`] has the
//! counters, [`latency`] the latencies.

mod buckets;
pub mod child;
pub mod clock;
mod descriptors;
pub mod engine_set;
mod event_loop;
mod executor;
mod executor_message;
pub mod fork_server;
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
pub(crate) use strand::datagram_header::datagram_position;
pub use strand::files;
