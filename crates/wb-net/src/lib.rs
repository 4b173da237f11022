//! The network workload engine: profiles in uperf's language, measured from both ends.
//!
//! A net profile is parsed ([`language`]), mirrored for every host that it names ([`mirror`]), and executed by this
//! machine and its servers ([`session`]) over an authenticated control connection ([`control`]). Strands move bytes
//! ([`engine`]) over transports ([`transport`]), and the counters of both sides become one result ([`result`]).
//! [`presets`] are ready-made profiles; [`support`] checks which features a kernel lacks.
//!
//! This crate does not depend on plans, runs, tests or workers, so that it is usable alone. It prints nothing.
//!
//! Start with [`session::client`], then [`engine::protocol`], the messages that drive an engine.

pub mod ceiling;
pub mod control;
pub mod engine;
pub mod fuzzing;
mod handshake_signatures;
pub mod language;
pub mod mirror;
pub mod netstat;
pub mod presets;
pub mod result;
pub mod session;
pub mod support;
pub mod sweep;
pub mod transport;
