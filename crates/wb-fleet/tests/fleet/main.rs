//! Hosts as they are met: real sshd on real networks, and everything that can be wrong with them.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod faults;
mod lab;
mod use_of_hosts;
