//! The network workload engine: profiles in uperf's language, measured from both ends.
//!
//! A profile is read ([`language`]), mirrored for every host that it names ([`mirror`]), and carried out by this
//! machine and its servers ([`session`]) over a control connection that nobody else can use ([`control`]). Strands
//! move bytes ([`engine`]) over transports ([`transport`]), and what both sides counted becomes one result
//! ([`result`]). [`presets`] are profiles for whoever writes none; [`support`] says what a kernel lacks.
//!
//! It must not know plans, runs, tests or workers: it is usable alone. It prints nothing.
//!
//! Start with [`session::client`], then [`engine::protocol`], the messages that sites are driven by.

pub mod control;
pub mod engine;
pub mod language;
pub mod mirror;
pub mod netstat;
pub mod presets;
pub mod result;
pub mod session;
pub mod support;
pub mod transport;
