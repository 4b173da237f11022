//! Tests of the undo log.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod undo;
mod undo_dependents;
mod undo_log;
