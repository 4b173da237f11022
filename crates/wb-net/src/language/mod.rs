//! Profiles: what they say ([`profile`]).

pub mod profile;

pub use profile::*;
