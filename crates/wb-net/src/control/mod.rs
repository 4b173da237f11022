//! The control connection between `weighbridge net run` and `weighbridge net serve`.

mod fingerprint;
mod frame;
mod identity;
mod secret;
mod text;
mod token;
mod trust;

pub use fingerprint::{Fingerprint, FingerprintError};
pub use frame::{FrameError, FrameReader, FrameWriter};
pub use identity::{Identity, IdentityError};
pub use secret::SecretFileError;
pub use token::{Token, TokenError};
pub use trust::{Credentials, Trust};
