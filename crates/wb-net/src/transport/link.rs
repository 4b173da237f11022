//! Links: how both sides prepare the connections of a profile before the run, and open them during it.
//!
//! Every connect and accept of a profile is a link. Before the run the accepting side listens, and announces its
//! addresses over the control connection; the connecting side then tests that it reaches them ([`setup`]). A stream
//! begins with a [`cookie`](super::cookie). A datagram socket sends one before the run, and each side connects its
//! socket to the address that it arrived from, so that the measured datagrams carry nothing.

mod setup;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use socket2::Socket;

use self::setup::{Probe, SocketPairing};
use super::address::{HostAddress, TransportAddress};
use super::certificate::{self, CertificateFingerprint};
use super::cookie::{ConnectionPurpose, Cookie, LinkKey, SessionKey};
use super::data_ports::DataPorts;
use super::datagram::DatagramSocket;
use super::listener::Listener;
use super::socket::{self, SocketConfig};
use super::stream::StreamSocket;
use super::tls::{self, Tls};
use super::unverified::{CookieVerifier, unknown_peer};
use super::{InfoKind, Interest, Transport, WaitCondition, is_pending, quic, vsock};
use wb_net_profile::{Endpoint, Protocol};

/// What the accepting side of a link sends to the other side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// The address of its socket. An unspecified IP address stands for that of the control connection.
    pub address: TransportAddress,
    /// The fingerprint of its certificate, for protocols with certificates.
    pub certificate: Option<String>,
}

impl Announcement {
    fn fingerprint(&self) -> io::Result<CertificateFingerprint> {
        let missing = || io::Error::new(io::ErrorKind::InvalidData, "the peer announced no certificate fingerprint");
        CertificateFingerprint::parse(self.certificate.as_deref().ok_or_else(missing)?)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRole {
    Connector,
    Acceptor,
}

#[derive(Debug)]
pub struct LinkConfig<'a> {
    pub endpoint: &'a Arc<Endpoint>,
    pub role: LinkRole,
    pub local: HostAddress,
    /// Whether the profile names the local address.
    pub has_local: bool,
    pub session: SessionKey,
    pub key: LinkKey,
    /// Whether the connection is opened more than once.
    pub repeated: bool,
    /// Whether this side sends a message as soon as it is connected, which the cookie can precede.
    pub defers_cookie: bool,
    pub blocking: bool,
    /// Whether accepting may block, too; otherwise it has a limit that the caller observes.
    pub blocking_accept: bool,
    pub receive_timeout: Option<Duration>,
    pub ports: &'a Arc<DataPorts>,
}

#[derive(Debug)]
pub struct LinkEnd {
    endpoint: Arc<Endpoint>,
    role: LinkRole,
    local: HostAddress,
    has_local: bool,
    session: SessionKey,
    key: LinkKey,
    defers_cookie: bool,
    blocking: bool,
    receive_timeout: Option<Duration>,
    attempts: u32,
    sockets: EndSockets,
    /// TLS configuration; on the connecting side only once the peer's certificate is announced.
    tls: Option<tls::TlsConfig>,
}

#[derive(Debug)]
enum EndSockets {
    Connecting { peer: Option<TransportAddress>, probe: Option<Box<Probe>> },
    Listening(Listener),
    Paired(Box<PairedSocket>),
}

/// The only socket of one side, which is connected to the peer's before the run.
#[derive(Debug)]
struct PairedSocket {
    pairing: SocketPairing,
    fingerprint: Option<CertificateFingerprint>,
    quic: Option<Arc<quic::QuicSocketPair>>,
}

impl EndSockets {
    fn paired(pairing: SocketPairing) -> Self {
        Self::Paired(Box::new(PairedSocket { pairing, fingerprint: None, quic: None }))
    }
}

impl LinkEnd {
    /// Creates the sockets that must exist before the run.
    pub fn prepare(config: &LinkConfig<'_>) -> io::Result<Self> {
        let endpoint = config.endpoint;
        let socket_config = SocketConfig {
            endpoint,
            local: config.local,
            blocking: config.blocking,
            receive_timeout: config.receive_timeout,
        };
        let verifier = || CookieVerifier::new(config.session, config.key);
        let sockets = match (is_paired(endpoint.protocol), config.role) {
            (true, LinkRole::Connector) => {
                let bind = config.has_local;
                EndSockets::paired(SocketPairing::connector(&socket_config, bind, config.session, config.key)?)
            }
            (true, LinkRole::Acceptor) => {
                EndSockets::paired(SocketPairing::acceptor(&socket_config, verifier(), config.ports)?)
            }
            (false, LinkRole::Connector) => EndSockets::Connecting { peer: None, probe: None },
            (false, LinkRole::Acceptor) => {
                let kind = (config.blocking && config.blocking_accept, config.repeated);
                EndSockets::Listening(Listener::bind(&socket_config, verifier(), kind, config.ports)?)
            }
        };
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
            endpoint: endpoint.clone(),
            role: config.role,
            local: config.local,
            has_local: config.has_local,
            session: config.session,
            key: config.key,
            defers_cookie: config.defers_cookie,
            blocking: config.blocking,
            receive_timeout: config.receive_timeout,
            attempts: 0,
            sockets,
            tls,
        })
    }

    /// What the other side needs to know of the accepting side; `None` on the connecting side.
    pub fn announcement(&self) -> Option<Announcement> {
        let address = match &self.sockets {
            EndSockets::Connecting { .. } => return None,
            EndSockets::Listening(listener) => listener.address(),
            EndSockets::Paired(paired) => paired.pairing.announced_address()?,
        };
        let mut address = address.clone();
        if let (TransportAddress::Ip(address), false) = (&mut address, self.has_local) {
            // The other side may reach this machine at another address than that which it has itself.
            let unspecified = if address.is_ipv4() {
                std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)
            } else {
                std::net::IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED)
            };
            *address = std::net::SocketAddr::new(unspecified, address.port());
        }
        let certificate = match self.endpoint.protocol {
            Protocol::Tls | Protocol::Quic => certificate::server_certificate().ok(),
            _ => None,
        };
        let certificate = certificate.map(|certificate| certificate.fingerprint.as_str().to_owned());
        Some(Announcement { address, certificate })
    }

    /// Sets the address of the accepting side, as announced by `host`, the peer of the control connection. `probe`
    /// makes the setup test that it can be reached. Fails if the announcement is invalid, or this side cannot reach it.
    pub fn set_peer(&mut self, announcement: &Announcement, host: HostAddress, probe: bool) -> io::Result<()> {
        let peer = resolve_peer(&announcement.address, self.local, host)?;
        if self.endpoint.protocol == Protocol::Tls {
            self.tls = Some(tls::TlsConfig::connector(announcement.fingerprint()?, self.endpoint.kernel_tls)?);
        }
        match &mut self.sockets {
            EndSockets::Connecting { .. } => {
                let probe = probe && !matches!(peer, TransportAddress::Unix(_));
                let start = || Probe::start(&self.socket_config(), self.has_local, &peer, self.session, self.key);
                let probe = probe.then(start).transpose()?.map(Box::new);
                self.sockets = EndSockets::Connecting { peer: Some(peer), probe };
            }
            EndSockets::Paired(paired) => {
                if self.endpoint.protocol == Protocol::Quic {
                    paired.fingerprint = Some(announcement.fingerprint()?);
                }
                paired.pairing.connect(peer)?;
            }
            EndSockets::Listening(_) => {
                return Err(io::Error::other("this end of the link accepts connections and has no peer's address"));
            }
        }
        Ok(())
    }

    /// Continues the setup without waiting; returns whether it is complete. Fails if the peer is not reached in time.
    pub fn continue_setup(&mut self) -> io::Result<bool> {
        let window = self.endpoint.window;
        let config = SocketConfig {
            endpoint: &self.endpoint,
            local: self.local,
            blocking: self.blocking,
            receive_timeout: self.receive_timeout,
        };
        match &mut self.sockets {
            EndSockets::Connecting { probe, .. } => {
                let complete = probe.as_mut().map_or(Ok(true), |probe| probe.advance(&config, self.has_local))?;
                if complete {
                    *probe = None;
                }
                Ok(complete)
            }
            EndSockets::Listening(listener) => {
                listener.answer_probes();
                Ok(true)
            }
            EndSockets::Paired(paired) => {
                let PairedSocket { pairing, fingerprint, quic } = &mut **paired;
                if !pairing.advance()? {
                    return Ok(false);
                }
                if let (Protocol::Quic, None, Some((socket, TransportAddress::Ip(peer)))) =
                    (self.endpoint.protocol, &quic, pairing.connected())
                {
                    let role = match (self.role, fingerprint.take()) {
                        (LinkRole::Connector, Some(fingerprint)) => quic::QuicConfig::connector(fingerprint, window)?,
                        (LinkRole::Connector, None) => return Err(unknown_peer()),
                        (LinkRole::Acceptor, _) => quic::QuicConfig::acceptor(window)?,
                    };
                    *quic = Some(Arc::new(quic::QuicSocketPair::new(socket, *peer, role)?));
                }
                Ok(true)
            }
        }
    }

    /// Answers what the other side repeats or tests during its setup; returns whether that must be repeated soon.
    pub fn maintain_setup(&mut self) -> bool {
        match &mut self.sockets {
            EndSockets::Connecting { .. } => false,
            EndSockets::Listening(listener) => listener.answer_probes(),
            EndSockets::Paired(paired) => paired.pairing.repeat_answer(),
        }
    }

    /// Describes what the accepting side waits at, for messages: `port 40000`.
    pub fn describe_peer(&self) -> String {
        match &self.sockets {
            EndSockets::Connecting { peer: Some(peer), .. } => peer.to_string(),
            EndSockets::Listening(listener) => listener.address().to_string(),
            EndSockets::Connecting { peer: None, .. } => "an unknown address".to_owned(),
            EndSockets::Paired(paired) => paired.pairing.describe(),
        }
    }

    fn socket_config(&self) -> SocketConfig<'_> {
        SocketConfig {
            endpoint: &self.endpoint,
            local: self.local,
            blocking: self.blocking,
            receive_timeout: self.receive_timeout,
        }
    }

    /// Begins to open connection number `ordinal` of the strand to this host; [`Transport::establish`] completes it.
    pub fn connect(&mut self, ordinal: u32) -> io::Result<Box<dyn Transport>> {
        match &self.sockets {
            EndSockets::Connecting { peer, .. } => {
                let peer = socket::sock_addr(peer.as_ref().ok_or_else(unknown_peer)?)?;
                let socket = self.socket_config().connecting_socket(self.has_local, Some(self.key.strand))?;
                self.attempts += 1;
                let cookie =
                    Cookie { purpose: ConnectionPurpose::Connection, link: self.key, attempt: self.attempts, ordinal };
                let cookie = Some(self.session.seal(&cookie));
                match socket.connect(&peer) {
                    Ok(()) => self.transport(socket, true, cookie),
                    Err(error) if is_pending(&error) => self.transport(socket, false, cookie),
                    Err(error) => Err(error),
                }
            }
            EndSockets::Paired(_) => self.paired_transport(),
            EndSockets::Listening(_) => {
                Err(io::Error::other("this end of the link accepts connections and cannot open any"))
            }
        }
    }

    /// Accepts the next connection, with its number among those that the other side opened; for datagram sockets,
    /// returns the only one, without a number.
    pub fn accept(&mut self) -> io::Result<(Box<dyn Transport>, Option<u32>)> {
        match &mut self.sockets {
            EndSockets::Listening(listener) => {
                let accepted = listener.accept(self.blocking)?;
                Ok((self.transport(accepted.socket, true, None)?, Some(accepted.ordinal)))
            }
            EndSockets::Paired(_) => Ok((self.paired_transport()?, None)),
            EndSockets::Connecting { .. } => {
                Err(io::Error::other("this end of the link opens connections and cannot accept any"))
            }
        }
    }

    /// The condition to wait for after [`LinkEnd::accept`] returned `WouldBlock`.
    pub fn wait_condition(&self) -> WaitCondition {
        match &self.sockets {
            EndSockets::Listening(listener) => listener.wait_condition(),
            EndSockets::Connecting { .. } | EndSockets::Paired(_) => {
                WaitCondition { fd: None, interest: Interest::Readable, until: None }
            }
        }
    }

    pub fn take_rejected(&mut self) -> u64 {
        match &mut self.sockets {
            EndSockets::Listening(listener) => listener.take_rejected(),
            EndSockets::Connecting { .. } | EndSockets::Paired(_) => 0,
        }
    }

    fn paired_transport(&self) -> io::Result<Box<dyn Transport>> {
        let EndSockets::Paired(paired) = &self.sockets else { return Err(unknown_peer()) };
        let (socket, peer) = paired.pairing.connected().ok_or_else(unknown_peer)?;
        let socket = socket.try_clone()?;
        if let Some(pair) = &paired.quic {
            return Ok(Box::new(quic::Quic::new(socket, pair.clone())?));
        }
        socket.connect(&socket::sock_addr(peer)?)?;
        Ok(Box::new(if self.endpoint.gso {
            DatagramSocket::with_offload(socket)?
        } else {
            DatagramSocket::new(socket)
        }))
    }

    fn transport(
        &self,
        socket: Socket,
        established: bool,
        cookie: Option<[u8; super::cookie::LENGTH]>,
    ) -> io::Result<Box<dyn Transport>> {
        let stream = |socket, kind| StreamSocket::new(socket, kind, established, cookie, self.defers_cookie);
        Ok(match (self.endpoint.protocol, &self.tls) {
            (Protocol::Tls, Some(config)) => Box::new(Tls::new(socket, config, self.endpoint.kernel_tls, cookie)?),
            (Protocol::Tls, None) => return Err(unknown_peer()),
            (Protocol::Sctp, _) => Box::new(super::sctp::Association::new(socket, cookie)),
            (Protocol::Tcp, _) => Box::new(stream(socket, InfoKind::Tcp)),
            (Protocol::Vsock, _) => Box::new(stream(socket, InfoKind::Vsock)),
            _ => Box::new(stream(socket, InfoKind::Buffers)),
        })
    }
}

/// Resolves an announced address, on the host at the other end of the control connection.
fn resolve_peer(announced: &TransportAddress, local: HostAddress, host: HostAddress) -> io::Result<TransportAddress> {
    let invalid = |message: String| Err(io::Error::new(io::ErrorKind::InvalidData, message));
    match announced {
        TransportAddress::Ip(address) if address.ip().is_unspecified() => {
            let address = host.with_port(address.port());
            address.map(TransportAddress::Ip).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
        }
        TransportAddress::Ip(_) => Ok(announced.clone()),
        // Other programs' sockets on this machine do not belong to the run.
        TransportAddress::Unix(name) if !name.starts_with(socket::UNIX_NAME_PREFIX) => {
            invalid(format!("the peer announced a socket of another program: `{}`", name.escape_default()))
        }
        TransportAddress::Unix(_) if !is_same_machine(local, host) => {
            invalid(format!("UNIX sockets cannot reach another machine: {host}"))
        }
        TransportAddress::Unix(_) => Ok(announced.clone()),
        TransportAddress::Vsock { port, .. } if is_same_machine(local, host) => {
            Ok(TransportAddress::Vsock { cid: vsock::LOOPBACK_CID, port: *port })
        }
        TransportAddress::Vsock { .. } => Ok(announced.clone()),
    }
}

fn is_same_machine(local: HostAddress, peer: HostAddress) -> bool {
    match (local, peer) {
        (HostAddress::Ip { address: local, .. }, HostAddress::Ip { address: peer, .. }) => {
            local == peer || peer.is_loopback()
        }
        (local, peer) => local == peer,
    }
}

/// Whether each end has a single socket, which is connected to the peer's before the run.
pub(super) fn is_paired(protocol: Protocol) -> bool {
    protocol.is_datagram() || protocol == Protocol::Quic
}
