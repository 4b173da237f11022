//! The client side of a control connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::channel::Channel;
use super::error::ControlError;
use super::handshake::{self, Addresses, HandshakeConfig};
use super::limits::ControlLimits;
use super::trust::Credentials;
use super::{socket, tls};

/// Connects to the server at this address and authenticates both sides
pub async fn connect(
    addr: SocketAddr,
    credentials: &Credentials,
    limits: &ControlLimits,
) -> Result<Channel, ControlError> {
    let config = HandshakeConfig::Client(Arc::new(tls::client_config(credentials).map_err(ControlError::Tls)?));
    let stream = connect_tcp(addr, limits).await?;
    let setup_failed = |source| ControlError::SetupFailed { peer: addr, source };
    socket::configure(&stream).map_err(setup_failed)?;
    let addresses = Addresses { local: stream.local_addr().map_err(setup_failed)?, peer: addr };
    handshake::perform(stream, addresses, config, credentials, limits).await
}

async fn connect_tcp(addr: SocketAddr, limits: &ControlLimits) -> Result<TcpStream, ControlError> {
    let within = limits.connect_timeout;
    match timeout(within, TcpStream::connect(addr)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Err(ControlError::ConnectionRefused { addr })
        }
        Ok(Err(source)) if needs_interface(addr) && source.kind() == io::ErrorKind::InvalidInput => {
            Err(ControlError::NoInterface { addr })
        }
        Ok(Err(source)) => Err(ControlError::Unreachable { addr, source }),
        Err(_) => Err(ControlError::ConnectTimeout { addr, timeout: within }),
    }
}

/// Whether an address is that of a link, without the link.
fn needs_interface(addr: SocketAddr) -> bool {
    matches!(addr, SocketAddr::V6(addr) if addr.ip().is_unicast_link_local() && addr.scope_id() == 0)
}
