//! The network workload engine: profiles in uperf's language, measured from both ends.
//!
//! A profile (`wb-net-profile`) is executed by this machine and its servers ([`session`]) over an authenticated control
//! connection ([`control`]). Strands move bytes ([`engine`]) over transports ([`transport`]), and the counters of both sides
//! become one result ([`result`]), whose types are those of `wb_results::net`.
//!
//! This crate does not depend on plans, runs, tests or workers, so that it is usable alone. It prints nothing.
//!
//! Start with [`session::client`], then [`engine::protocol`], the messages that drive an engine.

pub mod ceiling;
pub mod control;
pub mod engine;
pub mod fuzzing;
mod handshake_signatures;
pub mod netstat;
pub mod result;
pub mod session;
pub mod transport;
