//! The undo log, whatever happens to it.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod undo;
mod undo_dependents;
mod undo_log;
