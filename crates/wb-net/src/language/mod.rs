//! The profile language: its data types ([`profile`]), its parser ([`parser`]), and its diagnostics ([`diagnostic`]).
//!
//! Text becomes tags (`markup`), tags a [`NetProfile`] (`builder`), and then the use of its connections is checked.

mod attributes;
mod builder;
pub mod check;
mod connection_check;
pub(crate) mod connections;
mod context;
pub mod diagnostic;
mod endpoint;
mod flowop;
mod flowop_source;
mod keywords;
mod markup;
mod message;
mod options;
pub mod parser;
pub mod profile;
mod quantity;
mod spanned_text;
pub mod variables;

pub use check::{ProfileCheck, check};
pub use connection_check::MAX_UDP_PAYLOAD;
pub use diagnostic::{ProfileDiagnostics, ProfileNote};
pub(crate) use keywords::opposite;
pub use parser::{ParsedProfile, decode_text, parse};
pub use profile::*;
pub use quantity::parse_type_of_service;
pub use variables::Variables;
