//! Tests of archives as files: round trips, hostile archives, and arbitrary damage.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod hostile;
mod mutations;
mod round_trip;
mod support;
