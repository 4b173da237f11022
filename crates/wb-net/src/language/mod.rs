//! Profiles: what they say ([`profile`]), how their text is read ([`read`]), and what is wrong with them ([`fault`]).
//!
//! Text becomes tags (`markup`), tags become a [`Profile`] (`tree`), whose connections are then followed.

mod attributes;
mod builder;
pub mod check;
mod connection_check;
pub(crate) mod connections;
mod context;
pub mod diagnostic;
mod endpoint;
mod flowop;
mod keywords;
mod markup;
mod message;
mod nearest;
mod options;
pub mod parser;
pub mod profile;
mod quantity;
mod spanned_text;
pub mod variables;

pub use check::{ProfileCheck, check};
pub use connection_check::MAX_UDP_PAYLOAD;
pub use diagnostic::{ProfileDiagnostic, ProfileDiagnostics, ProfileNote};
pub(crate) use keywords::opposite;
pub use parser::{ParsedProfile, decode_text, parse};
pub use profile::*;
pub use variables::Variables;
