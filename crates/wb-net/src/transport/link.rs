//! Links: how both sides create their sockets and exchange addresses before the run.
//!
//! Every connect and accept of a profile is a link. Before the run both sides make their sockets, or hold ports for
//! them, and tell each other the addresses over the control connection. So the side that accepts takes connections
//! from just those addresses, and the measured traffic carries no mark and needs no round trip to be recognised.

use std::{collections::HashSet, io, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use socket2::Socket;

use super::{
    InfoKind, Interest, Transport, WaitCondition,
    address::{HostAddress, TransportAddress},
    certificate::{self, CertificateFingerprint},
    datagram::DatagramSocket,
    listener::{Listener, SharedListeners},
    port_pool::PortPool,
    quic,
    socket::{self, SocketConfig},
    stream::StreamSocket,
    tls::{self, Tls},
    vsock,
};
use crate::language::{Endpoint, Protocol};

/// What one side tells the other of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Where its sockets are: one, or for connections that are made over and over several.
    pub addresses: Vec<TransportAddress>,
    /// The fingerprint of the certificate that the accepting side will show, of protocols that have one.
    pub certificate: Option<String>,
}

/// Which part of a link is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRole {
    /// The one that connects.
    Connector,
    /// The one that accepts.
    Acceptor,
}

/// What an end is made from.
#[derive(Debug)]
pub struct LinkConfig<'a> {
    /// What the profile says.
    pub endpoint: &'a Endpoint,
    /// Which part is played.
    pub part: LinkRole,
    /// Where this machine is.
    pub local: HostAddress,
    /// Whether the connection is made more than once.
    pub repeated: bool,
    /// How many strands of this group make it.
    pub strands: usize,
    /// Whether system calls wait.
    pub blocking: bool,
    /// After which time a blocking receive gives up.
    pub receive_timeout: Option<Duration>,
    /// The doors that strands of this process share.
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
    /// How TLS is spoken; of the opener once it knows the other side's certificate.
    tls: Option<tls::TlsConfig>,
}

#[derive(Debug)]
enum EndSockets {
    /// Ports from which connections are opened.
    Connecting { pool: PortPool, peer: Option<TransportAddress> },
    /// Where connections are taken.
    Listening(Listener),
    /// A socket that is connected to one other.
    Paired {
        socket: Socket,
        address: TransportAddress,
        peer: Option<TransportAddress>,
        quic: Option<Arc<quic::QuicSocketPair>>,
    },
}

impl LinkEnd {
    /// Makes sockets, or holds ports for them.
    pub fn prepare(terms: &LinkConfig<'_>) -> io::Result<Self> {
        let manner = SocketConfig {
            endpoint: terms.endpoint,
            local: terms.local,
            blocking: terms.blocking,
            receive_timeout: terms.receive_timeout,
        };
        let port = terms.endpoint.port.unwrap_or(0);
        let kind = match (is_paired(terms.endpoint.protocol), terms.part) {
            (true, part) => {
                let (port, shared) = match part {
                    LinkRole::Connector => (0, false),
                    LinkRole::Acceptor if port > 0 => (port, true),
                    LinkRole::Acceptor => terms.listeners.datagram_port(),
                };
                let socket = manner.bind(port, shared)?;
                if terms.endpoint.protocol == Protocol::Quic && terms.endpoint.window.is_none() {
                    quic::set_buffer_sizes(&socket)?;
                }
                let address = socket::local_address(&socket, terms.local)?;
                EndSockets::Paired { socket, address, peer: None, quic: None }
            }
            (false, LinkRole::Connector) => {
                EndSockets::Connecting { pool: PortPool::bind(&manner, terms.repeated, terms.strands)?, peer: None }
            }
            (false, LinkRole::Acceptor) => {
                EndSockets::Listening(Listener::bind(&manner, terms.repeated, terms.listeners)?)
            }
        };
        let (endpoint, here) = (terms.endpoint.clone(), terms.local);
        let mut tls = None;
        if endpoint.protocol == Protocol::Tls {
            if endpoint.kernel_tls {
                tls::require_kernel(&manner.socket()?)?;
            }
            if terms.part == LinkRole::Acceptor {
                tls = Some(tls::TlsConfig::acceptor(endpoint.kernel_tls)?);
            }
        }
        if endpoint.protocol == Protocol::Quic {
            // What it announces.
            certificate::server_certificate()?;
        }
        Ok(Self {
            endpoint,
            part: terms.part,
            local: here,
            blocking: terms.blocking,
            receive_timeout: terms.receive_timeout,
            sockets: kind,
            tls,
        })
    }

    /// What the other side has to know.
    pub fn announcement(&self) -> Announcement {
        let addresses = match &self.sockets {
            EndSockets::Connecting { pool, .. } => pool.addresses().to_vec(),
            EndSockets::Listening(door) => vec![door.address().clone()],
            EndSockets::Paired { address, .. } => vec![address.clone()],
        };
        let certificate = match (self.endpoint.protocol, self.part) {
            (Protocol::Tls | Protocol::Quic, LinkRole::Acceptor) => certificate::server_certificate().ok(),
            _ => None,
        };
        Announcement { addresses, certificate: certificate.map(|identity| identity.fingerprint.as_str().to_owned()) }
    }

    /// Takes note of the other side's addresses. `there` is where the control connection comes from: connections
    /// are opened to nowhere else.
    pub fn set_peer(&mut self, mut announced: Announcement, there: HostAddress) -> io::Result<()> {
        if is_same_machine(self.local, there) {
            announced.addresses.iter_mut().for_each(vsock::use_loopback);
        }
        let Some(first) = announced.addresses.first().cloned() else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the other side announced no address"));
        };
        let here = self.local;
        let elsewhere = |address: &TransportAddress| match (address, there) {
            (TransportAddress::Ip(address), HostAddress::Ip(there)) => address.ip() != there,
            (TransportAddress::Vsock { cid, .. }, HostAddress::Vsock(there)) => *cid != there,
            // Sockets of others on this machine are none of a run's.
            (TransportAddress::Unix { name, .. }, there) => {
                !name.starts_with(socket::UNIX_NAME_PREFIX) || !is_same_machine(here, there)
            }
            _ => false,
        };
        if self.endpoint.protocol == Protocol::Tls && self.part == LinkRole::Connector {
            let fingerprint = CertificateFingerprint::from_announcement(announced.certificate.clone())?;
            self.tls = Some(tls::TlsConfig::connector(fingerprint, self.endpoint.kernel_tls)?);
        }
        match &mut self.sockets {
            EndSockets::Connecting { peer, .. } | EndSockets::Paired { peer, .. } if elsewhere(&first) => {
                *peer = None;
                let what = match first {
                    TransportAddress::Unix { .. } => {
                        format!("UNIX sockets reach this machine alone, and {there} is another")
                    }
                    _ => format!("the other side, at {there}, announced an address elsewhere"),
                };
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            EndSockets::Connecting { peer, .. } => *peer = Some(first),
            EndSockets::Listening(door) => door.expect_peers(announced.addresses.into_iter().collect::<HashSet<_>>()),
            EndSockets::Paired { socket, peer, quic, .. } => {
                socket.connect(&socket::sock_addr(&first)?)?;
                socket::discard_received(socket);
                if let (Protocol::Quic, TransportAddress::Ip(peer)) = (self.endpoint.protocol, &first) {
                    let window = self.endpoint.window;
                    let role = match self.part {
                        LinkRole::Connector => quic::QuicConfig::connector(
                            CertificateFingerprint::from_announcement(announced.certificate)?,
                            window,
                        ),
                        LinkRole::Acceptor => quic::QuicConfig::acceptor(window),
                    };
                    *quic = Some(Arc::new(quic::QuicSocketPair::new(socket, *peer, role?)?));
                }
                *peer = Some(first);
            }
        }
        Ok(())
    }

    /// Begins to open a connection. It is made when [`Transport::establish`] says so.
    pub fn connect(&mut self) -> io::Result<Box<dyn Transport>> {
        match &mut self.sockets {
            EndSockets::Connecting { pool, peer } => {
                let peer = socket::sock_addr(peer.as_ref().ok_or_else(unknown_peer)?)?;
                let manner = SocketConfig {
                    endpoint: &self.endpoint,
                    local: self.local,
                    blocking: self.blocking,
                    receive_timeout: self.receive_timeout,
                };
                for _ in 1..pool.port_count() {
                    let socket = pool.next_socket(&manner)?;
                    match socket.connect(&peer) {
                        // What was made there before has not ended yet: it is the other side's turn, or time's.
                        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
                        connected => return self.connecting_transport(socket, connected),
                    }
                }
                let socket = pool.next_socket(&manner)?;
                let connected = socket.connect(&peer);
                self.connecting_transport(socket, connected)
            }
            EndSockets::Paired { .. } => self.paired_transport(),
            EndSockets::Listening(_) => Err(io::Error::other("this end takes connections and opens none")),
        }
    }

    /// Takes the next connection, of datagram sockets the one there is.
    pub fn accept(&mut self) -> io::Result<Box<dyn Transport>> {
        match &mut self.sockets {
            EndSockets::Listening(door) => {
                let socket = door.accept(self.blocking)?;
                self.transport(socket, true)
            }
            EndSockets::Paired { .. } => self.paired_transport(),
            EndSockets::Connecting { .. } => Err(io::Error::other("this end opens connections and takes none")),
        }
    }

    /// What to wait for after [`End::take`] said `WouldBlock`.
    pub fn wait_condition(&self) -> WaitCondition {
        match &self.sockets {
            EndSockets::Listening(door) => door.wait_condition(),
            EndSockets::Connecting { .. } | EndSockets::Paired { .. } => {
                WaitCondition { fd: None, interest: Interest::Readable, until: None }
            }
        }
    }

    /// Connections from elsewhere that were dropped.
    pub fn take_refused(&self) -> u64 {
        match &self.sockets {
            EndSockets::Listening(door) => door.take_refused(),
            EndSockets::Connecting { .. } | EndSockets::Paired { .. } => 0,
        }
    }

    fn paired_transport(&self) -> io::Result<Box<dyn Transport>> {
        let EndSockets::Paired { socket, peer: Some(peer), quic, .. } = &self.sockets else {
            return Err(unknown_peer());
        };
        let socket = socket.try_clone()?;
        if let Some(link) = quic {
            return Ok(Box::new(quic::Quic::new(socket, link.clone())?));
        }
        socket.connect(&socket::sock_addr(peer)?)?;
        Ok(Box::new(DatagramSocket::new(socket)))
    }

    /// A connection that is made, or about to be.
    fn connecting_transport(&self, socket: Socket, connected: io::Result<()>) -> io::Result<Box<dyn Transport>> {
        match connected {
            Ok(()) => self.transport(socket, true),
            Err(error) if is_in_progress(&error) => self.transport(socket, false),
            Err(error) => Err(error),
        }
    }

    fn transport(&self, socket: Socket, established: bool) -> io::Result<Box<dyn Transport>> {
        Ok(match (self.endpoint.protocol, &self.tls) {
            (Protocol::Tls, Some(role)) => Box::new(Tls::new(socket, role, self.endpoint.kernel_tls)?),
            (Protocol::Tls, None) => return Err(unknown_peer()),
            (Protocol::Sctp, _) => Box::new(super::sctp::Association::new(socket)),
            (Protocol::Tcp, _) => Box::new(StreamSocket::new(socket, InfoKind::Tcp, established)),
            (Protocol::Vsock, _) => Box::new(StreamSocket::new(socket, InfoKind::Vsock, established)),
            _ => Box::new(StreamSocket::new(socket, InfoKind::Buffers, established)),
        })
    }
}

/// Whether both ends of a control connection are on one machine.
fn is_same_machine(here: HostAddress, there: HostAddress) -> bool {
    match (here, there) {
        (HostAddress::Ip(here), HostAddress::Ip(there)) => here == there || there.is_loopback(),
        (here, there) => here == there,
    }
}

/// Whether each end has a socket of its own from the beginning, which is connected to the other.
fn is_paired(protocol: Protocol) -> bool {
    protocol.is_datagram() || protocol == Protocol::Quic
}

fn unknown_peer() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the other side's address is not known")
}

fn is_in_progress(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EALREADY))
}
