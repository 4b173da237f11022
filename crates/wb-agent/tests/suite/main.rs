//! Tests of the agent and its `Worker` handle with real processes on this machine.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod common;
mod cost;
mod processes;
mod terms;
mod unprivileged;
mod worker;
