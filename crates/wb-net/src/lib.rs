//! The network workload engine: profiles in uperf's language, measured from both ends.
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
