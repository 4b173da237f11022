//! The server side of control connections: accepting is quick, and each handshake is a future of its own.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use socket2::Socket;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver;
use tokio::time::sleep;

use super::channel::Channel;
use super::error::ControlError;
use super::handshake::{self, Addresses, HandshakeConfig};
use super::limiter::{HandshakeLimiter, HandshakePermit};
use super::limits::ControlLimits;
use super::trust::Credentials;
use super::{socket, tls};
use crate::transport::data_ports::{DataPorts, PortPolicy, SharedListener};

/// Pause after the process ran out of descriptors or memory
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct ControlListener {
    source: ConnectionSource,
    local: SocketAddr,
    credentials: Arc<Credentials>,
    config: Arc<ServerConfig>,
    limits: ControlLimits,
    limiter: Arc<HandshakeLimiter>,
}

#[derive(Debug)]
enum ConnectionSource {
    Exclusive(TcpListener),
    /// A socket shared with data connections, which a thread sorts
    Shared {
        receiver: Mutex<Receiver<Socket>>,
        _listener: Arc<SharedListener>,
    },
}

impl ControlListener {
    /// Listens on this address; port 0 lets the operating system choose one
    pub async fn bind(
        addr: SocketAddr,
        credentials: &Credentials,
        limits: &ControlLimits,
    ) -> Result<Self, ControlError> {
        let bind_failed = |source| ControlError::BindFailed { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(bind_failed)?;
        let local = listener.local_addr().map_err(bind_failed)?;
        Self::new(ConnectionSource::Exclusive(listener), local, credentials, limits)
    }

    /// Listens on this address for control connections and, on the same port, for data connections
    pub async fn bind_shared(
        addr: SocketAddr,
        credentials: &Credentials,
        limits: &ControlLimits,
    ) -> Result<(Self, Arc<DataPorts>), ControlError> {
        let bind_failed = |source| ControlError::BindFailed { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(bind_failed)?;
        let local = listener.local_addr().map_err(bind_failed)?;
        let ports = DataPorts::new(PortPolicy::Control(local.port()));
        let listener = listener.into_std().map_err(bind_failed)?;
        let (listener, receiver) = ports.share_with_control(Socket::from(listener)).map_err(bind_failed)?;
        let source = ConnectionSource::Shared { receiver: Mutex::new(receiver), _listener: listener };
        Ok((Self::new(source, local, credentials, limits)?, ports))
    }

    fn new(
        source: ConnectionSource,
        local: SocketAddr,
        credentials: &Credentials,
        limits: &ControlLimits,
    ) -> Result<Self, ControlError> {
        let config = Arc::new(tls::server_config(credentials).map_err(ControlError::Tls)?);
        let credentials = Arc::new(credentials.clone());
        Ok(Self { source, local, credentials, config, limits: *limits, limiter: HandshakeLimiter::new(limits) })
    }

    async fn accept_stream(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.source {
            ConnectionSource::Exclusive(listener) => listener.accept().await,
            ConnectionSource::Shared { receiver, .. } => {
                let socket = receiver.lock().await.recv().await;
                let socket = socket.ok_or_else(|| io::Error::other("the thread that accepts has ended"))?;
                let stream = TcpStream::from_std(socket.into())?;
                let peer = stream.peer_addr()?;
                Ok((stream, peer))
            }
        }
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts the next connection, which is not authenticated yet; safe to cancel. An error is permanent. Beyond the
    /// limits, the oldest connections that are not authenticated are closed
    pub async fn accept(&self) -> Result<UnauthenticatedConnection, ControlError> {
        loop {
            let (stream, peer) = match self.accept_stream().await {
                Ok(accepted) => accepted,
                Err(error) if is_transient(&error) => continue,
                Err(error) if is_resource_exhausted(&error) => {
                    sleep(ACCEPT_BACKOFF).await;
                    continue;
                }
                Err(source) => return Err(ControlError::AcceptFailed { source }),
            };
            let peer = canonical(peer);
            let permit = self.limiter.acquire(peer.ip());
            let (credentials, config) = (Arc::clone(&self.credentials), Arc::clone(&self.config));
            return Ok(UnauthenticatedConnection { stream, peer, credentials, config, limits: self.limits, permit });
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
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// Performs the handshake within the handshake timeout and returns the channel; spawn this in a task, so that an
    /// untrusted peer blocks nobody
    pub async fn handshake(self) -> Result<Channel, ControlError> {
        let Self { stream, peer, credentials, config, limits, permit } = self;
        let setup_failed = |source| ControlError::SetupFailed { peer, source };
        socket::configure(&stream).map_err(setup_failed)?;
        let addresses = Addresses { local: canonical(stream.local_addr().map_err(setup_failed)?), peer };
        let handshake = handshake::perform(stream, addresses, HandshakeConfig::Server(config), &credentials, &limits);
        tokio::select! {
            channel = handshake => channel,
            () = permit.evicted() => Err(ControlError::Evicted { peer }),
        }
    }
}

/// Turns the IPv4-mapped IPv6 address that a socket for both families reports into one of IPv4
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
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
                | libc::ENOTCONN
        )
    )
}

fn is_resource_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}
