//! The control connection between `weighbridge net run` and `weighbridge net serve`: encrypted, and open only to those
//! who prove that they know a token or hold a pinned key.
//!
//! Everything that arrives before that proof is a stranger's: short frames, a deadline, few at once, and no answer that
//! depends on a secret. This module knows nothing of workloads. Begin with [`connect`] and [`Listener`]; what happens
//! between a connection and a [`Channel`] stands in `handshake.rs`, and why it is safe in `proof.rs` and `tls.rs`.

mod channel;
mod connect;
mod display;
mod error;
mod fingerprint;
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
pub use error::{ControlError, Role};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use frame::{FrameError, FrameReader, FrameWriter};
pub use hello::{ControlHello, PROTOCOL};
pub use identity::{Identity, IdentityError};
pub use limits::ControlLimits;
pub use listener::{ControlListener, HalfOpen};
pub use secret_file::SecretFileError;
pub use token::{Token, TokenError};
pub use trust::{Credentials, Trust};
