//! An endpoint over plain TCP for tests of matrices, as endpoints/README.md describes endpoints, with faults that
//! weighbridge has to find: `PROGRAM listen|dial [--fault FAULT] …`.
//!
//! Must not depend on: anything. The program is compiled by the build script, from the standard library alone, so that
//! it starts within a millisecond.
//!
//! Start with `program/main.rs`.

#![forbid(unsafe_code)]

/// Path of the program.
pub const PROGRAM: &str = env!("WB_TEST_ENDPOINT");
