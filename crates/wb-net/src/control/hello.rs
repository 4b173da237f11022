//! The hello: who speaks which version, told once both sides trust each other.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use super::channel::FramedTls;
use super::display::excerpt;
use super::error::ControlError;

/// The version of what is said after the hello; both sides must speak the same
pub const PROTOCOL: u32 = 1;

/// What a side says of itself; its fields never change their meaning, only more may come
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlHello {
    /// The version of the protocol
    pub protocol: u32,
    /// The version of the program
    pub program: String,
}

impl ControlHello {
    /// Ours
    pub fn local() -> Self {
        Self { protocol: PROTOCOL, program: env!("CARGO_PKG_VERSION").into() }
    }
}

/// Tell ours and hear theirs; both speak before they listen, so that both can name both versions
pub(super) async fn exchange<S>(
    frames: &mut FramedTls<S>,
    peer: SocketAddr,
    ours: ControlHello,
) -> Result<ControlHello, ControlError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    frames.send(&ours).await.map_err(|error| ControlError::from_handshake_error(peer, error))?;
    let mut theirs: ControlHello =
        frames.expect().await.map_err(|error| ControlError::from_handshake_error(peer, error))?;
    theirs.program = excerpt(&theirs.program);
    match theirs.protocol == ours.protocol {
        true => Ok(theirs),
        false => Err(ControlError::VersionMismatch { peer, ours, theirs }),
    }
}
