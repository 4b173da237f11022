//! What successive connections over the same pair of sockets share.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, ConnectionId, Endpoint, EndpointConfig, NoneTokenStore, ServerConfig, TransportConfig,
    ValidationTokenConfig, VarInt,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use quinn_udp::UdpSocketState;
use rustix::rand::{GetRandomFlags, getrandom};
use socket2::Socket;

use super::super::certificate::{self, Fingerprint};

/// By which both sides know what they speak.
const ALPN: &[u8] = b"weighbridge";

/// So many datagrams, or rows of them that the kernel put together, are taken at once.
pub(super) const SLOTS: usize = 4;

/// The largest of them.
pub(super) const SLOT: usize = 1 << 16;

/// The opener's first connection id: a number and as many random bytes. No other has this length.
const FIRST_ID: usize = 16;

/// So many datagrams are kept for the next connection; the others come again.
const EARLY: usize = 16;

/// How connections over a link are made.
#[derive(Debug, Clone)]
pub(in crate::transport) enum Role {
    /// By connecting.
    Opener(ClientConfig),
    /// By accepting.
    Taker(Arc<ServerConfig>),
}

impl Role {
    /// Of a side that knows the other's certificate.
    pub(in crate::transport) fn opener(fingerprint: Fingerprint, window: Option<u32>) -> io::Result<Self> {
        let mut tls = certificate::connects(fingerprint)?;
        tls.alpn_protocols = vec![ALPN.to_vec()];
        let crypto = QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport(window)).token_store(Arc::new(NoneTokenStore));
        Ok(Self::Opener(config))
    }

    /// Of a side that shows one.
    pub(in crate::transport) fn taker(window: Option<u32>) -> io::Result<Self> {
        let mut tls = certificate::identity()?.accepts()?;
        tls.alpn_protocols = vec![ALPN.to_vec()];
        let crypto = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        let mut tokens = ValidationTokenConfig::default();
        tokens.sent(0);
        config.transport_config(transport(window)).migration(false).validation_token_config(tokens);
        Ok(Self::Taker(Arc::new(config)))
    }
}

/// Receive window of a stream in bytes, where the profile names none: quinn's.
const WINDOW: u32 = 1_250_000;

fn transport(window: Option<u32>) -> Arc<TransportConfig> {
    let window = window.unwrap_or(WINDOW);
    let mut config = TransportConfig::default();
    config.max_idle_timeout(None);
    config.max_concurrent_uni_streams(VarInt::from_u32(0)).max_concurrent_bidi_streams(VarInt::from_u32(1));
    // No more is kept here than the other side would take.
    config.stream_receive_window(VarInt::from_u32(window)).send_window(u64::from(window));
    Arc::new(config)
}

/// Gives a socket room for what may be under way, as far as the kernel allows (`net.core.rmem_max`): what finds none is
/// lost, and a loss slows QUIC down.
pub(in crate::transport) fn make_room(socket: &Socket) -> io::Result<()> {
    socket.set_recv_buffer_size(WINDOW as usize)?;
    socket.set_send_buffer_size(WINDOW as usize)
}

/// A pair of sockets, seen from one side.
pub(in crate::transport) struct Link {
    pub(super) udp: UdpSocketState,
    pub(super) peer: SocketAddr,
    role: Role,
    config: Arc<EndpointConfig>,
    between: Mutex<Between>,
}

/// What one connection leaves to the next.
#[derive(Default)]
struct Between {
    /// The number of the last one.
    last: u64,
    /// What came of the next one.
    early: Vec<BytesMut>,
    /// Memory to receive into.
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Link {
    /// Over a socket that is connected.
    pub(in crate::transport) fn new(socket: &Socket, peer: SocketAddr, role: Role) -> io::Result<Self> {
        let udp = UdpSocketState::new(socket.into())?;
        Ok(Self { udp, peer, role, config: Arc::default(), between: Mutex::default() })
    }

    /// A new one for each connection: to it, packets of others are strange.
    pub(super) fn endpoint(&self) -> Endpoint {
        let server = match &self.role {
            Role::Opener(_) => None,
            Role::Taker(config) => Some(config.clone()),
        };
        Endpoint::new(self.config.clone(), server, !self.udp.may_fragment(), None)
    }

    pub(super) fn is_opener(&self) -> bool {
        matches!(self.role, Role::Opener(_))
    }

    /// The number of an opener's next connection, and how it is made.
    pub(super) fn next(&self) -> Option<(u64, ClientConfig)> {
        let Role::Opener(config) = &self.role else { return None };
        let mut between = self.between();
        between.last += 1;
        let number = between.last;
        let mut config = config.clone();
        config.initial_dst_cid_provider(Arc::new(move || first_id(number)));
        Some((number, config))
    }

    /// Whether a connection that is waited for can have this number; then it has it.
    pub(super) fn is_next(&self, number: u64) -> bool {
        let mut between = self.between();
        let is_next = number > between.last;
        if is_next {
            between.last = number;
        }
        is_next
    }

    /// Keeps a datagram for the next connection.
    pub(super) fn keep(&self, datagram: BytesMut) {
        let early = &mut self.between().early;
        if early.len() < EARLY {
            early.push(datagram);
        }
    }

    /// What was kept.
    pub(super) fn early(&self) -> Vec<BytesMut> {
        std::mem::take(&mut self.between().early)
    }

    /// Memory to receive into.
    pub(super) fn buffer(&self) -> Vec<u8> {
        let buffer = std::mem::take(&mut self.between().buffer);
        if buffer.is_empty() { vec![0; SLOT * SLOTS] } else { buffer }
    }

    /// Leaves it to the next connection.
    pub(super) fn give_back(&self, buffer: Vec<u8>) {
        self.between().buffer = buffer;
    }

    fn between(&self) -> MutexGuard<'_, Between> {
        // What is guarded is whole after every step.
        self.between.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn first_id(number: u64) -> ConnectionId {
    let mut id = [0; FIRST_ID];
    id[..8].copy_from_slice(&number.to_be_bytes());
    // Without randomness it would still be told apart from others.
    let _: rustix::io::Result<usize> = getrandom(&mut id[8..], GetRandomFlags::empty());
    ConnectionId::new(&id)
}

/// The number in a packet that begins a connection (RFC 9000, section 17.2.2).
pub(super) fn number(datagram: &[u8]) -> Option<u64> {
    let (&first, rest) = datagram.split_first()?;
    let is_initial = first & 0b1011_0000 == 0b1000_0000;
    let id = rest.get(5..5 + FIRST_ID)?;
    (is_initial && usize::from(rest[4]) == FIRST_ID).then(|| id[..8].try_into().map(u64::from_be_bytes).ok())?
}
