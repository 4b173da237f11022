//! Profiles of network workloads, in uperf's language: data types ([`profile`]), parser ([`parser`]), and diagnostics
//! ([`diagnostic`]).
//!
//! Text becomes tags (`markup`), tags a [`NetProfile`] (`builder`), and then the use of its connections is checked.
//! A profile is mirrored for every host that it names ([`mirror`]). [`presets`] are ready-made profiles; [`support`] checks
//! which features a kernel lacks. The engine that executes profiles is `wb-net`.

#![forbid(unsafe_code)]

mod attributes;
mod builder;
pub mod check;
mod connection_check;
mod connections;
mod context;
pub mod diagnostic;
mod endpoint;
mod flowop;
mod flowop_source;
mod keywords;
mod markup;
mod message;
pub mod mirror;
mod options;
pub mod parser;
pub mod presets;
pub mod profile;
mod quantity;
mod spanned_text;
pub mod support;
pub mod variables;

pub use check::{ProfileCheck, check};
pub use connection_check::MAX_UDP_PAYLOAD;
pub use diagnostic::{ProfileDiagnostics, ProfileNote};
pub use parser::{ParsedProfile, decode_text, parse};
pub use profile::*;
pub use quantity::parse_type_of_service;
pub use variables::Variables;
