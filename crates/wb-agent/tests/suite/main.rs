//! Tests of the agent and its `Worker` handle with real processes on this machine.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod common;
mod cost;
mod processes;
mod session_config;
mod unprivileged;
mod worker;
