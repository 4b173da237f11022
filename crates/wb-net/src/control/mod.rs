//! The control connection between `weighbridge net run` and `weighbridge net serve`: encrypted, and open only to peers
//! that prove knowledge of a token or of the private key to a pinned fingerprint.
//!
//! Until that proof a peer is untrusted: short frames, a deadline, few connections at once, and no answer that depends
//! on a secret. This module knows nothing of workloads. Begin with [`connect()`] and [`ControlListener`]; the steps from
//! a connection to a [`Channel`] are in `handshake.rs`, and why they are safe in `proof.rs` and `tls.rs`.

mod channel;
mod connect;
mod display;
mod error;
mod fingerprint;
mod foreign_peer;
mod frame;
mod handshake;
mod hello;
mod identity;
mod limiter;
mod limits;
mod listener;
mod proof;
mod secret_file;
mod socket;
#[cfg(test)]
mod tests;
mod tls;
mod token;
mod trust;

pub use channel::{Channel, ChannelInfo, ChannelReceiver, ChannelSender};
pub use connect::connect;
pub use display::escape_control;
pub use error::{ControlError, Role};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use foreign_peer::ForeignProgram;
pub(crate) use foreign_peer::recognise_program;
pub use frame::{FrameError, FrameReader, FrameWriter};
pub use hello::{ControlHello, PROTOCOL};
pub use identity::{Identity, IdentityError};
pub use limits::ControlLimits;
pub use listener::{ControlListener, UnauthenticatedConnection};
pub use secret_file::SecretFileError;
pub use token::{Token, TokenError};
pub use trust::{Credentials, Trust};
