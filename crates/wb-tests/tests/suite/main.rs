//! Integration tests of the built-in, declarative and external tests on this machine, with real programs.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod common;
mod declarative;
mod external;
mod fio;
mod fio_common;
mod fio_libblkio;
mod fio_nbd;
mod kernels;
mod redis;
mod registry;
