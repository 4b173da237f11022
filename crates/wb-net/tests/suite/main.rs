//! The network engine over this machine's loopback.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod commands;
mod common;
mod corpus;
mod engine;
mod secure;
mod unsupported;
