//! Tests with real sshd in network namespaces: connecting, using hosts, and failures.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod faults;
mod lab;
mod untrusted_cache;
mod use_of_hosts;
