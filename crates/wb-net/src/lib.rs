//! The network workload engine: profiles in uperf's language, measured from both ends.
pub mod language;
pub mod mirror;
pub mod presets;
pub mod support;
