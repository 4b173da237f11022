//! The agent and its `Worker` handle, over real processes of this machine.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod common;
mod cost;
mod processes;
mod terms;
mod unprivileged;
mod worker;
