//! The server's way in: accepting is quick, and each handshake is a future of its own.

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

/// Until a process that ran out of descriptors or memory looks whether some came back
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// Where clients connect to
#[derive(Debug)]
pub struct ControlListener {
    listener: TcpListener,
    local: SocketAddr,
    credentials: Arc<Credentials>,
    config: Arc<ServerConfig>,
    limits: ControlLimits,
    gate: Arc<HandshakeLimiter>,
}

impl ControlListener {
    /// Listen at this address; port 0 lets the operating system choose one
    pub async fn bind(
        addr: SocketAddr,
        credentials: &Credentials,
        limits: &ControlLimits,
    ) -> Result<Self, ControlError> {
        let config = Arc::new(tls::server_config(credentials).map_err(ControlError::Tls)?);
        let unbound = |source| ControlError::BindFailed { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(unbound)?;
        let local = listener.local_addr().map_err(unbound)?;
        let credentials = Arc::new(credentials.clone());
        Ok(Self { listener, local, credentials, config, limits: *limits, gate: HandshakeLimiter::new(limits) })
    }

    /// Where it listens
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The next connection, of which nothing is known yet; safe to cancel
    ///
    /// Connections for which there is no place are closed here. An error means that none will ever come again.
    pub async fn accept(&self) -> Result<HalfOpen, ControlError> {
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
            if let Some(place) = self.gate.try_acquire(peer.ip()) {
                let (credentials, config) = (Arc::clone(&self.credentials), Arc::clone(&self.config));
                return Ok(HalfOpen { stream, peer, credentials, config, limits: self.limits, place });
            }
        }
    }

    /// How many connections were closed because there was no place for them
    pub fn rejected_count(&self) -> u64 {
        self.gate.rejected_count()
    }
}

/// A connection of a stranger; dropped, it is closed and its place is free
#[derive(Debug)]
pub struct HalfOpen {
    stream: TcpStream,
    peer: SocketAddr,
    credentials: Arc<Credentials>,
    config: Arc<ServerConfig>,
    limits: ControlLimits,
    place: HandshakePermit,
}

impl HalfOpen {
    /// Where it comes from
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// The channel, once both sides have proven themselves
    ///
    /// To be spawned, so that nobody waits for a stranger; it ends by the handshake limit.
    pub async fn handshake(self) -> Result<Channel, ControlError> {
        let Self { stream, peer, credentials, config, limits, place } = self;
        let not_set_up = |source| ControlError::SetupFailed { peer, source };
        socket::configure(&stream).map_err(not_set_up)?;
        let addresses = Addresses { local: stream.local_addr().map_err(not_set_up)?, peer };
        let channel =
            handshake::perform(stream, addresses, HandshakeConfig::Server(config), &credentials, &limits).await;
        drop(place);
        channel
    }
}

/// A client that was gone before it was accepted (accept(2) passes on what is pending on the new socket)
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
