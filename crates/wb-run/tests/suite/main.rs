//! Runs on simulated workers: order, sampling, resume and failures, without processes and in simulated time.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod estimates;
mod failures;
mod resume;
mod sampling;
mod schedule;
mod testbed;
mod workers;
