//! The network workload engine: profiles in uperf's language, measured from both ends.
pub mod control;
pub mod language;
