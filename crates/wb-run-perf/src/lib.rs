//! Translates what users of run-perf write into arguments of this program: tests, profiles, tools and builds.
//!
//! This crate runs nothing and knows no command line: it turns texts into texts, with a note on each difference from
//! run-perf. Start with [`mod@test`] (tests with pbench's parameters), then [`profile`].

#![forbid(unsafe_code)]

pub mod build;
pub mod profile;
mod ram_disk;
pub mod test;
pub mod tools;
