//! The hello: the versions that both sides announce once they trust each other.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use super::channel::FramedTls;
use super::display::excerpt;
use super::error::ControlError;

/// The version of the messages after the hello; it must be the same on both sides
pub const PROTOCOL: u32 = 1;

/// The versions of one side; fields never change their meaning, new ones may be added
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlHello {
    /// Version of the protocol
    pub protocol: u32,
    /// Version of the program
    pub program: String,
}

impl ControlHello {
    /// The versions of this build
    pub fn local() -> Self {
        Self { protocol: PROTOCOL, program: env!("CARGO_PKG_VERSION").into() }
    }
}

/// Sends the local hello and receives the peer's; both sides send first, so that both can report both versions
pub(super) async fn exchange<S>(
    frames: &mut FramedTls<S>,
    peer: SocketAddr,
    local_hello: ControlHello,
) -> Result<ControlHello, ControlError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    frames.send(&local_hello).await.map_err(|error| ControlError::from_handshake_error(peer, error))?;
    let mut peer_hello: ControlHello =
        frames.expect().await.map_err(|error| ControlError::from_handshake_error(peer, error))?;
    peer_hello.program = excerpt(&peer_hello.program);
    match peer_hello.protocol == local_hello.protocol {
        true => Ok(peer_hello),
        false => Err(ControlError::VersionMismatch { peer, local_hello, peer_hello }),
    }
}
