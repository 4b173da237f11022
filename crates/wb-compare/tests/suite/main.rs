//! Builds, models and verdicts: on made builds, on run-perf's own, and simulated.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod ab;
mod folders;
mod history;
mod noise;
mod reading;
mod run_perf;
mod shared_models;
mod shared_scores;
mod support;
mod test_setup;
mod tolerance;
