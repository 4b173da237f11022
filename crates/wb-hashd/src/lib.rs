//! hashd: a latency-sensitive request workload, which stands for a service while something else competes with it.
//!
//! A request reads chunks of files, sleeps, touches chunks of anonymous memory, sleeps, hashes as many bytes, sleeps,
//! and writes a line to a log. Two controllers adjust how many requests are in flight, so that a quantile of the
//! latency stays within its target and the rate meets its own. In the open loop, requests start at times of a schedule
//! instead.
//!
//! ```text
//! Hashd::start ─▶ footprint, test_files, anonymous_memory, fill    what requests use
//!      │
//!      ▼
//! control thread (run) ─▶ control          figures of a period → concurrency
//!      │    ▲        └──▶ report           figures of a period → HashdReport
//!      ▼    │ window statistics of each worker, merged once a period
//! worker threads (workers, or open_loop) ─▶ request ─▶ distribution, test_files, anonymous_memory
//!      │ one entry per request
//!      ▼
//! log thread (log_file)
//! ```
//!
//! Must not depend on: plans, samples, run folders. Parameters go in, reports come out; both are plain serde types.
//!
//! [`sizing`] finds the parameters with which a machine is loaded fully.
//!
//! Start with [`HashdParams`] and [`Hashd::start`], then `request` (what is done) and `control` (how much of it).

mod anonymous_memory;
mod config;
mod content;
mod control;
mod distribution;
mod error;
mod fill;
mod footprint;
mod log_file;
mod open_loop;
mod params;
mod params_file;
mod report;
mod request;
mod run;
mod size;
pub mod sizing;
mod test_files;
mod window;
mod work_folder;
mod workers;

pub use config::{HashdConfig, HashdEvent};
pub use error::HashdError;
pub use params::{Arrivals, HashdParams, OpenLoop, ParamError, PidGains};
pub use params_file::ParamsFile;
pub use report::{CpuTimes, HashdReport, LatencyQuantiles};
pub use run::Hashd;

/// Bytes of a page: the unit of addresses, whatever the kernel's page size is.
const PAGE: usize = 4096;
