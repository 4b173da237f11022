//! Sequences on a fake machine: planned, killed, failing, reused, studied and merged.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod derived;
mod fake;
mod faults;
mod kills;
mod reuse;
mod text;
