//! Builds, models and verdicts: with generated builds, run-perf's own data, and simulations.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod ab;
mod check;
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
mod verdicts;
