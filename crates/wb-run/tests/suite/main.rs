//! Runs on simulated workers: order, sampling, resume and failures, without processes and in simulated time.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod cleanup;
mod consistency;
mod estimates;
mod failures;
mod resolved_values;
mod resume;
mod sampling;
mod schedule;
mod stdout;
mod testbed;
mod workers;
