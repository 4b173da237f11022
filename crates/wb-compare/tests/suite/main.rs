//! Builds, models and verdicts: with generated builds, run-perf's own data, and simulations.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod ab;
mod check;
mod family;
mod folders;
mod history;
mod noise;
#[path = "../../../wb-stats/examples/common/page.rs"]
mod page;
mod pairs;
#[path = "../../../wb-stats/examples/common/populations.rs"]
#[allow(dead_code)] // the true medians are used by another test
mod populations;
mod reading;
mod run_perf;
mod shared_models;
mod shared_scores;
mod support;
mod test_setup;
mod tolerance;
mod verdicts;
mod within_run;
