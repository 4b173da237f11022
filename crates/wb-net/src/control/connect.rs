//! The client's way in.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::channel::Channel;
use super::error::ControlError;
use super::handshake::{self, Addresses, Side};
use super::limits::Limits;
use super::trust::Credentials;
use super::{socket, tls};

/// A channel to the server at this address
pub async fn connect(addr: SocketAddr, credentials: &Credentials, limits: &Limits) -> Result<Channel, ControlError> {
    let side = Side::Client(Arc::new(tls::client(credentials).map_err(ControlError::Tls)?));
    let stream = reach(addr, limits).await?;
    let not_set_up = |source| ControlError::NotSetUp { peer: addr, source };
    socket::prepare(&stream).map_err(not_set_up)?;
    let addresses = Addresses { local: stream.local_addr().map_err(not_set_up)?, peer: addr };
    handshake::perform(stream, addresses, side, credentials, limits).await
}

async fn reach(addr: SocketAddr, limits: &Limits) -> Result<TcpStream, ControlError> {
    let within = limits.connect;
    match timeout(within, TcpStream::connect(addr)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Err(ControlError::NothingListens { addr })
        }
        Ok(Err(source)) => Err(ControlError::Unreachable { addr, source }),
        Err(_) => Err(ControlError::NoAnswer { addr, within }),
    }
}
