//! What a user sees of the program, and what becomes of a run whatever happens to it.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod bisect;
mod clean;
mod compare;
mod faults;
mod guests;
mod hosts;
mod import;
mod kills;
mod lab;
mod net;
mod net_plan;
mod plan;
mod profiles;
mod read;
mod run;
mod schemas;
mod ssh;
mod variants;
