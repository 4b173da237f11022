//! The server side of control connections: accepting is quick, and each handshake is a future of its own.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::channel::Channel;
use super::error::ControlError;
use super::handshake::{self, Addresses, HandshakeConfig};
use super::limiter::{HandshakeLimiter, HandshakePermit};
use super::limits::ControlLimits;
use super::trust::Credentials;
use super::{socket, tls};

/// Pause after the process ran out of descriptors or memory
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// A server's listening socket for control connections
#[derive(Debug)]
pub struct ControlListener {
    listener: TcpListener,
    local: SocketAddr,
    credentials: Arc<Credentials>,
    config: Arc<ServerConfig>,
    limits: ControlLimits,
    limiter: Arc<HandshakeLimiter>,
}

impl ControlListener {
    /// Listens on this address; port 0 lets the operating system choose one
    pub async fn bind(
        addr: SocketAddr,
        credentials: &Credentials,
        limits: &ControlLimits,
    ) -> Result<Self, ControlError> {
        let config = Arc::new(tls::server_config(credentials).map_err(ControlError::Tls)?);
        let bind_failed = |source| ControlError::BindFailed { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(bind_failed)?;
        let local = listener.local_addr().map_err(bind_failed)?;
        let credentials = Arc::new(credentials.clone());
        Ok(Self { listener, local, credentials, config, limits: *limits, limiter: HandshakeLimiter::new(limits) })
    }

    /// The address it listens on
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts the next connection, which is not authenticated yet; safe to cancel
    ///
    /// Connections beyond the limits are closed here. An error is permanent.
    pub async fn accept(&self) -> Result<UnauthenticatedConnection, ControlError> {
        loop {
            let (stream, peer) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) if is_transient(&error) => continue,
                Err(error) if is_resource_exhausted(&error) => {
                    sleep(ACCEPT_BACKOFF).await;
                    continue;
                }
                Err(source) => return Err(ControlError::AcceptFailed { source }),
            };
            if let Some(place) = self.limiter.try_acquire(peer.ip()) {
                let (credentials, config) = (Arc::clone(&self.credentials), Arc::clone(&self.config));
                return Ok(UnauthenticatedConnection {
                    stream,
                    peer,
                    credentials,
                    config,
                    limits: self.limits,
                    permit: place,
                });
            }
        }
    }

    /// Number of connections that were closed because of the limits
    pub fn rejected_count(&self) -> u64 {
        self.limiter.rejected_count()
    }
}

/// An unauthenticated connection; dropping it closes it and releases its permit
#[derive(Debug)]
pub struct UnauthenticatedConnection {
    stream: TcpStream,
    peer: SocketAddr,
    credentials: Arc<Credentials>,
    config: Arc<ServerConfig>,
    limits: ControlLimits,
    permit: HandshakePermit,
}

impl UnauthenticatedConnection {
    /// The peer's address
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// Performs the handshake and returns the channel
    ///
    /// Spawn this in a task, so that an untrusted peer blocks nobody; it ends within the handshake timeout.
    pub async fn handshake(self) -> Result<Channel, ControlError> {
        let Self { stream, peer, credentials, config, limits, permit: place } = self;
        let setup_failed = |source| ControlError::SetupFailed { peer, source };
        socket::configure(&stream).map_err(setup_failed)?;
        let addresses = Addresses { local: stream.local_addr().map_err(setup_failed)?, peer };
        let channel =
            handshake::perform(stream, addresses, HandshakeConfig::Server(config), &credentials, &limits).await;
        drop(place);
        channel
    }
}

/// Whether a client vanished before it was accepted (accept(2) returns errors pending on the new socket)
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNABORTED
                | libc::EINTR
                | libc::EPERM
                | libc::EPROTO
                | libc::ENETDOWN
                | libc::ENOPROTOOPT
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::EHOSTUNREACH
                | libc::EOPNOTSUPP
                | libc::ENETUNREACH
        )
    )
}

fn is_resource_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}
