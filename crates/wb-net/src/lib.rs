//! The network workload engine: profiles in uperf's language, measured from both ends.
pub mod engine;
pub mod language;
pub mod netstat;
pub mod session;
pub mod transport;
