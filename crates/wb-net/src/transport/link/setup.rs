//! The setup of links before the run: probes of listeners, and the pairing of datagram sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, getpeername, recvfrom};
use socket2::Socket;

use crate::transport::address::TransportAddress;
use crate::transport::cookie::{self, ConnectionPurpose, Cookie, LinkKey, SessionKey};
use crate::transport::data_ports::{DataPorts, Registration};
use crate::transport::datagram_port::DatagramPort;
use crate::transport::socket::{self, CONNECT_TIMEOUT, SocketConfig};
use crate::transport::unverified::{CookieStatus, CookieVerifier, UnverifiedConnection};
use crate::transport::{is_pending, quic, stream};
use wb_net_profile::Protocol;

/// How long a listener that accepts connections may take to answer a probe.
const ANSWER_TIMEOUT: Duration = CONNECT_TIMEOUT;

/// How long it may take to connect to a listener. Every `CONNECT_INTERVAL` another attempt is made, since lost packets
/// would otherwise be repeated only after a second.
const PROBE_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const CONNECT_INTERVAL: Duration = Duration::from_millis(180);

/// How long a datagram socket may take to answer a cookie.
const DATAGRAM_ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval between two cookies of a datagram socket: initial and maximum.
const RESEND_INTERVAL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

#[derive(Debug)]
pub(super) struct Probe {
    attempts: Vec<ProbeAttempt>,
    peer: TransportAddress,
    cookie: Cookie,
    session: SessionKey,
    began: Instant,
}

#[derive(Debug)]
struct ProbeAttempt {
    connection: UnverifiedConnection,
    is_connected: bool,
}

impl ProbeAttempt {
    fn start(config: &SocketConfig<'_>, bind: bool, peer: &TransportAddress) -> io::Result<Self> {
        let socket = config.connecting_socket(bind, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&socket::sock_addr(peer)?) {
            Err(error) if !is_pending(&error) => Err(describe_refusal(peer, &error)),
            _ => Ok(Self { connection: UnverifiedConnection::new(socket), is_connected: false }),
        }
    }

    fn advance(&mut self, peer: &TransportAddress, cookie: &[u8]) -> io::Result<CookieStatus> {
        if !self.is_connected {
            match stream::check_connected(&self.connection.socket) {
                Ok(()) => {
                    rustix::net::send(&self.connection.socket, cookie, SendFlags::NOSIGNAL)?;
                    self.is_connected = true;
                }
                Err(error) if is_pending(&error) => return Ok(CookieStatus::Incomplete),
                Err(error) => return Err(describe_refusal(peer, &error)),
            }
        }
        Ok(self.connection.receive())
    }
}

const FIREWALL_ADVICE: &str = "a firewall may drop connections to this port; `net serve --one-port` and `--data-ports \
                               LOW-HIGH` limit the ports";

const VSOCK_ADVICE: &str =
    "vsock needs a kernel module: `vsock_loopback` on one machine, `vhost_vsock` on the host of a guest";

impl Probe {
    pub(super) fn start(
        config: &SocketConfig<'_>,
        bind: bool,
        peer: &TransportAddress,
        session: SessionKey,
        link: LinkKey,
    ) -> io::Result<Self> {
        Ok(Self {
            attempts: vec![ProbeAttempt::start(config, bind, peer)?],
            peer: peer.clone(),
            cookie: Cookie { purpose: ConnectionPurpose::Probe, link, attempt: 0, ordinal: 0 },
            session,
            began: Instant::now(),
        })
    }

    /// Returns whether the listener has answered; does not wait.
    pub(super) fn advance(&mut self, config: &SocketConfig<'_>, bind: bool) -> io::Result<bool> {
        let bytes = self.session.seal(&self.cookie);
        let expected = Cookie { purpose: ConnectionPurpose::Acknowledgement, ..self.cookie };
        let peer = &self.peer;
        let refused = |message: String| Err(io::Error::new(io::ErrorKind::ConnectionRefused, message));
        for attempt in &mut self.attempts {
            match attempt.advance(peer, &bytes)? {
                CookieStatus::Complete(bytes) if self.session.open(&bytes) == Some(expected) => return Ok(true),
                CookieStatus::Incomplete => {}
                CookieStatus::Complete(_) | CookieStatus::Foreign => {
                    return refused(format!("{peer} is not a port of this session: something else answers there"));
                }
                CookieStatus::Closed => {
                    return refused(format!(
                        "{peer} closed the connection: something else answers there, or the server has no session left"
                    ));
                }
            }
        }
        self.continue_waiting(config, bind)?;
        Ok(false)
    }

    /// Begins another attempt if it is due, unless the time is over.
    fn continue_waiting(&mut self, config: &SocketConfig<'_>, bind: bool) -> io::Result<()> {
        let elapsed = self.began.elapsed();
        let is_connected = self.attempts.iter().any(|attempt| attempt.is_connected);
        // Each port is probed once before the run: one that a firewall drops is named before anything is measured.
        let limit = if is_connected { ANSWER_TIMEOUT } else { PROBE_CONNECT_TIMEOUT };
        if elapsed >= limit {
            let (peer, seconds) = (&self.peer, limit.as_secs());
            let message = if is_connected {
                format!(
                    "{peer} accepted a connection and did not answer within {seconds} s: the server may be overloaded"
                )
            } else {
                let advice = if let TransportAddress::Vsock { .. } = peer { VSOCK_ADVICE } else { FIREWALL_ADVICE };
                format!("no answer from {peer} within {seconds} s: {advice}")
            };
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        if !is_connected && elapsed >= CONNECT_INTERVAL * self.attempts.len() as u32 {
            self.attempts.push(ProbeAttempt::start(config, bind, &self.peer)?);
        }
        Ok(())
    }
}

fn describe_refusal(peer: &TransportAddress, error: &io::Error) -> io::Error {
    let advice = if let TransportAddress::Vsock { .. } = peer { format!("; {VSOCK_ADVICE}") } else { String::new() };
    io::Error::new(error.kind(), format!("cannot connect to {peer}: {error}{advice}"))
}

/// A datagram socket that becomes connected to the peer's before the run.
#[derive(Debug)]
pub(super) struct SocketPairing {
    socket: Option<Socket>,
    /// The address of this side's socket; unknown for the sockets of a shared port.
    address: Option<TransportAddress>,
    peer: Option<TransportAddress>,
    role: PairingRole,
    deadline: Instant,
    is_paired: bool,
}

#[derive(Debug)]
enum PairingRole {
    /// Sends its cookie until it is acknowledged.
    Connector { session: SessionKey, cookie: Cookie, next: Instant, interval: Duration },
    /// Waits for the cookie at a socket of its own.
    Acceptor { verifier: CookieVerifier, answer: Option<[u8; cookie::LENGTH]> },
    /// Waits for a socket from a shared port, which has received the cookie.
    SharedAcceptor { registration: Registration, _port: Arc<DatagramPort>, link: (SessionKey, LinkKey) },
}

impl SocketPairing {
    pub(super) fn connector(
        config: &SocketConfig<'_>,
        bind: bool,
        session: SessionKey,
        link: LinkKey,
    ) -> io::Result<Self> {
        let socket = match config.endpoint.protocol {
            // Without a name, it could not be answered.
            Protocol::UnixDgram => config.bind(0, false)?,
            _ => config.connecting_socket(bind, Some(link.strand))?,
        };
        set_quic_buffers(config, &socket)?;
        let cookie = Cookie { purpose: ConnectionPurpose::Connection, link, attempt: 1, ordinal: 0 };
        let role = PairingRole::Connector { session, cookie, next: Instant::now(), interval: RESEND_INTERVAL.0 };
        Ok(Self::new(Some(socket), None, role))
    }

    /// Creates the socket of the accepting side, or joins a shared port.
    pub(super) fn acceptor(config: &SocketConfig<'_>, verifier: CookieVerifier, ports: &DataPorts) -> io::Result<Self> {
        if let Some(port) = ports.datagram_port(config)? {
            let address = port.address.clone();
            let link = (*verifier.session(), verifier.link());
            let registration = ports.register(verifier, config.endpoint)?;
            return Ok(Self::new(None, Some(address), PairingRole::SharedAcceptor { registration, _port: port, link }));
        }
        let socket = config.bind(0, false)?;
        set_quic_buffers(config, &socket)?;
        let address = socket::local_address(&socket, config.local)?;
        Ok(Self::new(Some(socket), Some(address), PairingRole::Acceptor { verifier, answer: None }))
    }

    fn new(socket: Option<Socket>, address: Option<TransportAddress>, role: PairingRole) -> Self {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        Self { socket, address, peer: None, role, deadline, is_paired: false }
    }

    /// The address that the other side needs; `None` on the connecting side.
    pub(super) fn announced_address(&self) -> Option<&TransportAddress> {
        self.address.as_ref()
    }

    pub(super) fn connect(&mut self, peer: TransportAddress) -> io::Result<()> {
        if let Some(socket) = &self.socket {
            socket.connect(&socket::sock_addr(&peer)?)?;
        }
        self.peer = Some(peer);
        self.deadline = Instant::now() + DATAGRAM_ANSWER_TIMEOUT;
        Ok(())
    }

    /// The socket and its peer, once they are connected.
    pub(super) fn connected(&self) -> Option<(&Socket, &TransportAddress)> {
        self.is_paired.then_some(self.socket.as_ref().zip(self.peer.as_ref()))?
    }

    pub(super) fn describe(&self) -> String {
        let address = self.peer.as_ref().or(self.address.as_ref());
        address.map_or_else(|| "an unknown address".to_owned(), TransportAddress::to_string)
    }

    /// Returns whether the sockets are connected to each other; does not wait.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        if !self.is_paired {
            self.is_paired = match &mut self.role {
                PairingRole::Connector { session, cookie, next, interval } => {
                    let Some(socket) = &self.socket else { return Ok(false) };
                    if self.peer.is_none() {
                        return Ok(false);
                    }
                    let now = Instant::now();
                    if now >= *next {
                        // Ignored: it is repeated, and a peer that cannot be reached is reported at the deadline.
                        let _: rustix::io::Result<usize> =
                            rustix::net::send(socket, &session.seal(cookie), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                        (*next, *interval) = (now + *interval, (*interval * 2).min(RESEND_INTERVAL.1));
                    }
                    let expected = Cookie { purpose: ConnectionPurpose::Acknowledgement, ..*cookie };
                    std::iter::from_fn(|| receive_cookie(socket))
                        .any(|(bytes, _)| bytes.and_then(|bytes| session.open(&bytes)) == Some(expected))
                }
                PairingRole::Acceptor { verifier, answer } => {
                    let Some(socket) = &self.socket else { return Ok(false) };
                    let verified = std::iter::from_fn(|| receive_cookie(socket)).find_map(|(bytes, from)| {
                        let cookie = verifier.verify(&bytes?)?;
                        (cookie.purpose == ConnectionPurpose::Connection).then_some((cookie, from?))
                    });
                    if let Some((cookie, from)) = verified {
                        rustix::net::connect(socket, &from)?;
                        // Of strangers, from before the kernel dropped theirs.
                        discard_received(socket);
                        self.peer = Some(peer_address(&from)?);
                        let bytes = verifier.acknowledgement(cookie);
                        *answer = Some(bytes);
                        send_answer(socket, &bytes);
                    }
                    self.peer.is_some()
                }
                PairingRole::SharedAcceptor { registration, link: (session, link), .. } => {
                    match registration.queue().pop() {
                        Ok(accepted) => {
                            let cookie = Cookie {
                                purpose: ConnectionPurpose::Acknowledgement,
                                link: *link,
                                attempt: 1,
                                ordinal: 0,
                            };
                            send_answer(&accepted.socket, &session.seal(&cookie));
                            self.peer = getpeername(&accepted.socket)?.map(|peer| peer_address(&peer)).transpose()?;
                            self.socket = Some(accepted.socket);
                            true
                        }
                        Err(error) if is_pending(&error) => false,
                        Err(error) => return Err(error),
                    }
                }
            };
        }
        if !self.is_paired && Instant::now() >= self.deadline {
            return Err(self.timeout_error());
        }
        Ok(self.is_paired)
    }

    /// Repeats the answer if the other side repeats its cookie, since the first answer was lost; returns whether that
    /// can happen.
    pub(super) fn repeat_answer(&self) -> bool {
        let Some(socket) = &self.socket else { return false };
        let answer = match &self.role {
            PairingRole::Connector { .. } => return false,
            PairingRole::Acceptor { answer, .. } => match answer {
                Some(answer) => *answer,
                None => return false,
            },
            PairingRole::SharedAcceptor { link: (session, link), .. } => session.seal(&Cookie {
                purpose: ConnectionPurpose::Acknowledgement,
                link: *link,
                attempt: 1,
                ordinal: 0,
            }),
        };
        let mut begin = [0; 4];
        while matches!(rustix::net::recv(socket, &mut begin, RecvFlags::DONTWAIT | RecvFlags::PEEK), Ok((4.., _)))
            && cookie::resembles_cookie(&begin)
        {
            receive_cookie(socket);
            send_answer(socket, &answer);
        }
        true
    }

    fn timeout_error(&self) -> io::Error {
        let address = self.describe();
        let message = match self.role {
            PairingRole::Connector { .. } => format!(
                "no answer from {address} within {} s: a firewall may drop datagrams to this port; \
                 `net serve --one-port` and `--data-ports LOW-HIGH` limit the ports",
                DATAGRAM_ANSWER_TIMEOUT.as_secs()
            ),
            _ => {
                let seconds = CONNECT_TIMEOUT.as_secs();
                format!("no datagram of the other side arrived at {address} within {seconds} s")
            }
        };
        io::Error::new(io::ErrorKind::TimedOut, message)
    }
}

fn set_quic_buffers(config: &SocketConfig<'_>, socket: &Socket) -> io::Result<()> {
    if config.endpoint.protocol == Protocol::Quic && config.endpoint.window.is_none() {
        quic::set_buffer_sizes(socket)?;
    }
    Ok(())
}

/// The next datagram, if it has the length of a cookie, and its sender; `None` if none is waiting.
fn receive_cookie(socket: &Socket) -> Option<(Option<[u8; cookie::LENGTH]>, Option<SocketAddrAny>)> {
    let mut buffer = [0; 2 * cookie::LENGTH];
    loop {
        match recvfrom(socket, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((length, _, from)) => return Some((buffer[..length].try_into().ok(), from)),
            // An earlier datagram did not reach the other side, whose socket may not exist yet.
            Err(Errno::CONNREFUSED | Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

fn send_answer(socket: &Socket, answer: &[u8]) {
    // Ignored: the other side repeats its cookie.
    let _: rustix::io::Result<usize> = rustix::net::send(socket, answer, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

fn peer_address(address: &SocketAddrAny) -> io::Result<TransportAddress> {
    if let Ok(address) = SocketAddr::try_from(address.clone()) {
        return Ok(TransportAddress::Ip(address));
    }
    let address = SocketAddrUnix::try_from(address.clone())?;
    let name = address.abstract_name().unwrap_or_default();
    Ok(TransportAddress::Unix(String::from_utf8_lossy(name).into_owned()))
}

fn discard_received(socket: &Socket) {
    let mut byte = [0; 1];
    while rustix::net::recv(socket, &mut byte, RecvFlags::DONTWAIT | RecvFlags::TRUNC).is_ok() {}
}
