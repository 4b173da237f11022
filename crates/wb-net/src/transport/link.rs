//! Links: how both sides create their sockets and exchange addresses before the run.
//!
//! Every connect and accept of a profile is a link. Before the run both sides create their sockets, or reserve ports
//! for them, and exchange the addresses over the control connection. So the accepting side accepts connections from
//! these addresses only, and the measured traffic needs no marker and no round trip to be identified.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use socket2::Socket;

use super::address::{HostAddress, TransportAddress};
use super::certificate::{self, CertificateFingerprint};
use super::datagram::DatagramSocket;
use super::listener::{Listener, SharedListeners};
use super::port_pool::PortPool;
use super::socket::{self, SocketConfig};
use super::stream::StreamSocket;
use super::tls::{self, Tls};
use super::{InfoKind, Interest, Transport, WaitCondition, is_pending, quic, vsock};
use crate::language::{Endpoint, Protocol};

/// The addresses of one side of a link, sent to the other side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Addresses of its sockets: one, or several for connections that are opened repeatedly.
    pub addresses: Vec<TransportAddress>,
    /// The fingerprint of the accepting side's certificate, for protocols with certificates.
    pub certificate: Option<String>,
}

impl Announcement {
    /// The fingerprint of the accepting side's certificate.
    fn fingerprint(&self) -> io::Result<CertificateFingerprint> {
        let missing = || io::Error::new(io::ErrorKind::InvalidData, "the peer announced no certificate fingerprint");
        CertificateFingerprint::parse(self.certificate.as_deref().ok_or_else(missing)?)
    }
}

/// The role of one side of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRole {
    /// Connects.
    Connector,
    /// Accepts.
    Acceptor,
}

/// The configuration of a link end.
#[derive(Debug)]
pub struct LinkConfig<'a> {
    /// The endpoint in the profile.
    pub endpoint: &'a Endpoint,
    /// The role of this side.
    pub role: LinkRole,
    /// The address of this machine.
    pub local: HostAddress,
    /// Whether the connection is opened more than once.
    pub repeated: bool,
    /// Number of strands in this group that open it.
    pub strands: usize,
    /// Whether system calls block.
    pub blocking: bool,
    /// Timeout of a blocking receive.
    pub receive_timeout: Option<Duration>,
    /// The listeners that strands of this process share.
    pub listeners: &'a Arc<SharedListeners>,
}

/// This side's end of a link.
#[derive(Debug)]
pub struct LinkEnd {
    endpoint: Endpoint,
    part: LinkRole,
    local: HostAddress,
    blocking: bool,
    receive_timeout: Option<Duration>,
    sockets: EndSockets,
    /// TLS configuration; on the connecting side only once the peer's certificate is announced.
    tls: Option<tls::TlsConfig>,
}

#[derive(Debug)]
enum EndSockets {
    /// The ports that connections are opened from.
    Connecting { pool: PortPool, peer: Option<TransportAddress> },
    /// The listener for connections.
    Listening(Listener),
    /// A socket that is connected to the peer's.
    Paired {
        socket: Socket,
        address: TransportAddress,
        peer: Option<TransportAddress>,
        quic: Option<Arc<quic::QuicSocketPair>>,
    },
}

impl LinkEnd {
    /// Creates sockets, or reserves ports for them.
    pub fn prepare(config: &LinkConfig<'_>) -> io::Result<Self> {
        let socket_config = SocketConfig {
            endpoint: config.endpoint,
            local: config.local,
            blocking: config.blocking,
            receive_timeout: config.receive_timeout,
        };
        let port = config.endpoint.port.unwrap_or(0);
        let sockets = match (is_paired(config.endpoint.protocol), config.role) {
            (true, part) => {
                let (port, shared) = match part {
                    LinkRole::Connector => (0, false),
                    LinkRole::Acceptor if port > 0 => (port, true),
                    LinkRole::Acceptor => config.listeners.datagram_port(),
                };
                let socket = socket_config.bind(port, shared)?;
                if config.endpoint.protocol == Protocol::Quic && config.endpoint.window.is_none() {
                    quic::set_buffer_sizes(&socket)?;
                }
                let address = socket::local_address(&socket, config.local)?;
                EndSockets::Paired { socket, address, peer: None, quic: None }
            }
            (false, LinkRole::Connector) => EndSockets::Connecting {
                pool: PortPool::bind(&socket_config, config.repeated, config.strands)?,
                peer: None,
            },
            (false, LinkRole::Acceptor) => {
                EndSockets::Listening(Listener::bind(&socket_config, config.repeated, config.listeners)?)
            }
        };
        let (endpoint, local) = (config.endpoint.clone(), config.local);
        let mut tls = None;
        if endpoint.protocol == Protocol::Tls {
            if endpoint.kernel_tls {
                tls::require_kernel(&socket_config.socket()?)?;
            }
            if config.role == LinkRole::Acceptor {
                tls = Some(tls::TlsConfig::acceptor(endpoint.kernel_tls)?);
            }
        }
        if endpoint.protocol == Protocol::Quic {
            // Generates the certificate that is announced.
            certificate::server_certificate()?;
        }
        Ok(Self {
            endpoint,
            part: config.role,
            local,
            blocking: config.blocking,
            receive_timeout: config.receive_timeout,
            sockets,
            tls,
        })
    }

    /// The addresses that the other side needs.
    pub fn announcement(&self) -> Announcement {
        let addresses = match &self.sockets {
            EndSockets::Connecting { pool, .. } => pool.addresses().to_vec(),
            EndSockets::Listening(listener) => vec![listener.address().clone()],
            EndSockets::Paired { address, .. } => vec![address.clone()],
        };
        let certificate = match (self.endpoint.protocol, self.part) {
            (Protocol::Tls | Protocol::Quic, LinkRole::Acceptor) => certificate::server_certificate().ok(),
            _ => None,
        };
        Announcement {
            addresses,
            certificate: certificate.map(|certificate| certificate.fingerprint.as_str().to_owned()),
        }
    }

    /// Sets the other side's addresses. `peer_host` is the peer of the control connection: connections are opened to no
    /// other host.
    pub fn set_peer(&mut self, mut announcement: Announcement, peer_host: HostAddress) -> io::Result<()> {
        if is_same_machine(self.local, peer_host) {
            announcement.addresses.iter_mut().for_each(vsock::use_loopback);
        }
        let Some(first) = announcement.addresses.first().cloned() else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the peer announced no address"));
        };
        let local = self.local;
        let is_foreign = |address: &TransportAddress| match (address, peer_host) {
            (TransportAddress::Ip(address), HostAddress::Ip(peer_host)) => address.ip() != peer_host,
            (TransportAddress::Vsock { cid, .. }, HostAddress::Vsock(peer_host)) => *cid != peer_host,
            // Other programs' sockets on this machine do not belong to the run.
            (TransportAddress::Unix { name, .. }, peer_host) => {
                !name.starts_with(socket::UNIX_NAME_PREFIX) || !is_same_machine(local, peer_host)
            }
            _ => false,
        };
        if self.endpoint.protocol == Protocol::Tls && self.part == LinkRole::Connector {
            self.tls = Some(tls::TlsConfig::connector(announcement.fingerprint()?, self.endpoint.kernel_tls)?);
        }
        match &mut self.sockets {
            EndSockets::Connecting { peer, .. } | EndSockets::Paired { peer, .. } if is_foreign(&first) => {
                *peer = None;
                let message = match first {
                    TransportAddress::Unix { .. } => {
                        format!("UNIX sockets cannot reach another machine: {peer_host}")
                    }
                    _ => format!("the peer at {peer_host} announced an address of another host"),
                };
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            EndSockets::Connecting { peer, .. } => *peer = Some(first),
            EndSockets::Listening(listener) => {
                listener.expect_peers(announcement.addresses.into_iter().collect::<HashSet<_>>())
            }
            EndSockets::Paired { socket, peer, quic, .. } => {
                socket.connect(&socket::sock_addr(&first)?)?;
                socket::discard_received(socket);
                if let (Protocol::Quic, TransportAddress::Ip(peer)) = (self.endpoint.protocol, &first) {
                    let window = self.endpoint.window;
                    let role = match self.part {
                        LinkRole::Connector => quic::QuicConfig::connector(announcement.fingerprint()?, window),
                        LinkRole::Acceptor => quic::QuicConfig::acceptor(window),
                    };
                    *quic = Some(Arc::new(quic::QuicSocketPair::new(socket, *peer, role?)?));
                }
                *peer = Some(first);
            }
        }
        Ok(())
    }

    /// Begins to open a connection. It is open once [`Transport::establish`] succeeds.
    pub fn connect(&mut self) -> io::Result<Box<dyn Transport>> {
        match &mut self.sockets {
            EndSockets::Connecting { pool, peer } => {
                let peer = socket::sock_addr(peer.as_ref().ok_or_else(unknown_peer)?)?;
                let config = SocketConfig {
                    endpoint: &self.endpoint,
                    local: self.local,
                    blocking: self.blocking,
                    receive_timeout: self.receive_timeout,
                };
                for _ in 1..pool.port_count() {
                    let socket = pool.next_socket(&config)?;
                    match socket.connect(&peer) {
                        // The previous connection from this port has not ended yet: try the next port.
                        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
                        connected => return self.connecting_transport(socket, connected),
                    }
                }
                let socket = pool.next_socket(&config)?;
                let connected = socket.connect(&peer);
                self.connecting_transport(socket, connected)
            }
            EndSockets::Paired { .. } => self.paired_transport(),
            EndSockets::Listening(_) => {
                Err(io::Error::other("this end of the link accepts connections and cannot open any"))
            }
        }
    }

    /// Accepts the next connection; for datagram sockets, returns the only one.
    pub fn accept(&mut self) -> io::Result<Box<dyn Transport>> {
        match &mut self.sockets {
            EndSockets::Listening(listener) => {
                let socket = listener.accept(self.blocking)?;
                self.transport(socket, true)
            }
            EndSockets::Paired { .. } => self.paired_transport(),
            EndSockets::Connecting { .. } => {
                Err(io::Error::other("this end of the link opens connections and cannot accept any"))
            }
        }
    }

    /// The condition to wait for after [`LinkEnd::accept`] returned `WouldBlock`.
    pub fn wait_condition(&self) -> WaitCondition {
        match &self.sockets {
            EndSockets::Listening(listener) => listener.wait_condition(),
            EndSockets::Connecting { .. } | EndSockets::Paired { .. } => {
                WaitCondition { fd: None, interest: Interest::Readable, until: None }
            }
        }
    }

    /// Takes the number of unexpected connections that were dropped.
    pub fn take_rejected(&self) -> u64 {
        match &self.sockets {
            EndSockets::Listening(listener) => listener.take_rejected(),
            EndSockets::Connecting { .. } | EndSockets::Paired { .. } => 0,
        }
    }

    fn paired_transport(&self) -> io::Result<Box<dyn Transport>> {
        let EndSockets::Paired { socket, peer: Some(peer), quic, .. } = &self.sockets else {
            return Err(unknown_peer());
        };
        let socket = socket.try_clone()?;
        if let Some(pair) = quic {
            return Ok(Box::new(quic::Quic::new(socket, pair.clone())?));
        }
        socket.connect(&socket::sock_addr(peer)?)?;
        Ok(Box::new(DatagramSocket::new(socket)))
    }

    /// A transport over a connected socket, or one that is still connecting.
    fn connecting_transport(&self, socket: Socket, connected: io::Result<()>) -> io::Result<Box<dyn Transport>> {
        match connected {
            Ok(()) => self.transport(socket, true),
            Err(error) if is_pending(&error) => self.transport(socket, false),
            Err(error) => Err(error),
        }
    }

    fn transport(&self, socket: Socket, established: bool) -> io::Result<Box<dyn Transport>> {
        Ok(match (self.endpoint.protocol, &self.tls) {
            (Protocol::Tls, Some(tls_config)) => Box::new(Tls::new(socket, tls_config, self.endpoint.kernel_tls)?),
            (Protocol::Tls, None) => return Err(unknown_peer()),
            (Protocol::Sctp, _) => Box::new(super::sctp::Association::new(socket)),
            (Protocol::Tcp, _) => Box::new(StreamSocket::new(socket, InfoKind::Tcp, established)),
            (Protocol::Vsock, _) => Box::new(StreamSocket::new(socket, InfoKind::Vsock, established)),
            _ => Box::new(StreamSocket::new(socket, InfoKind::Buffers, established)),
        })
    }
}

/// Whether both ends of a control connection are on the same machine.
fn is_same_machine(local: HostAddress, peer: HostAddress) -> bool {
    match (local, peer) {
        (HostAddress::Ip(local), HostAddress::Ip(peer)) => local == peer || peer.is_loopback(),
        (local, peer) => local == peer,
    }
}

/// Whether each end has a single socket, which is connected to the peer's from the beginning.
fn is_paired(protocol: Protocol) -> bool {
    protocol.is_datagram() || protocol == Protocol::Quic
}

fn unknown_peer() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the peer's address is unknown")
}
