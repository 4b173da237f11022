//! Profiles: what they say ([`profile`]), how their text is read ([`read`]), and what is wrong with them ([`fault`]).
//!
//! Text becomes tags (`markup`), tags become a [`Profile`] (`tree`), whose connections are then followed.

mod attributes;
pub mod check;
pub(crate) mod connections;
mod endpoint;
pub mod fault;
mod flowop;
mod follow;
mod markup;
mod message;
mod nearest;
mod options;
pub mod profile;
mod quantity;
pub mod read;
mod scope;
mod text;
mod tree;
pub mod variables;
mod words;

pub use check::{Check, check};
pub use fault::{Fault, Faults, Note};
pub use follow::LARGEST_DATAGRAM;
pub use profile::*;
pub use read::{Read, parse, text_of};
pub use variables::Variables;
pub(crate) use words::opposite;
