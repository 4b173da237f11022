//! Runs on simulated workers: order, sampling, resume and what becomes of failures, without a process and in no time.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod estimates;
mod failures;
mod resume;
mod sampling;
mod schedule;
mod testbed;
mod workers;
