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

use super::super::certificate::{self, CertificateFingerprint};

/// By which both sides know what they speak.
const ALPN: &[u8] = b"weighbridge";

/// So many datagrams, or rows of them that the kernel put together, are taken at once.
pub(super) const RECEIVE_SLOTS: usize = 4;

/// The largest of them.
pub(super) const SLOT_SIZE: usize = 1 << 16;

/// The opener's first connection id: a number and as many random bytes. No other has this length.
const INITIAL_ID_LENGTH: usize = 16;

/// So many datagrams are kept for the next connection; the others come again.
const MAX_EARLY: usize = 16;

/// How connections over a link are made.
#[derive(Debug, Clone)]
pub(in crate::transport) enum QuicConfig {
    /// By connecting.
    Connector(ClientConfig),
    /// By accepting.
    Acceptor(Arc<ServerConfig>),
}

impl QuicConfig {
    /// Of a side that knows the other's certificate.
    pub(in crate::transport) fn connector(
        fingerprint: CertificateFingerprint,
        window: Option<u32>,
    ) -> io::Result<Self> {
        let mut tls = certificate::client_config(fingerprint)?;
        tls.alpn_protocols = vec![ALPN.to_vec()];
        let crypto = QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport_config(window)).token_store(Arc::new(NoneTokenStore));
        Ok(Self::Connector(config))
    }

    /// Of a side that shows one.
    pub(in crate::transport) fn acceptor(window: Option<u32>) -> io::Result<Self> {
        let mut tls = certificate::server_certificate()?.server_config()?;
        tls.alpn_protocols = vec![ALPN.to_vec()];
        let crypto = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        let mut tokens = ValidationTokenConfig::default();
        tokens.sent(0);
        config.transport_config(transport_config(window)).migration(false).validation_token_config(tokens);
        Ok(Self::Acceptor(Arc::new(config)))
    }
}

/// Receive window of a stream in bytes, where the profile names none: quinn's.
const DEFAULT_WINDOW: u32 = 1_250_000;

fn transport_config(window: Option<u32>) -> Arc<TransportConfig> {
    let window = window.unwrap_or(DEFAULT_WINDOW);
    let mut config = TransportConfig::default();
    config.max_idle_timeout(None);
    config.max_concurrent_uni_streams(VarInt::from_u32(0)).max_concurrent_bidi_streams(VarInt::from_u32(1));
    // No more is kept here than the other side would take.
    config.stream_receive_window(VarInt::from_u32(window)).send_window(u64::from(window));
    Arc::new(config)
}

/// Gives a socket room for what may be under way, as far as the kernel allows (`net.core.rmem_max`): what finds none is
/// lost, and a loss slows QUIC down.
pub(in crate::transport) fn set_buffer_sizes(socket: &Socket) -> io::Result<()> {
    socket.set_recv_buffer_size(DEFAULT_WINDOW as usize)?;
    socket.set_send_buffer_size(DEFAULT_WINDOW as usize)
}

/// A pair of sockets, seen from one side.
pub(in crate::transport) struct QuicSocketPair {
    pub(super) udp: UdpSocketState,
    pub(super) peer: SocketAddr,
    role: QuicConfig,
    config: Arc<EndpointConfig>,
    state: Mutex<SharedState>,
}

/// What one connection leaves to the next.
#[derive(Default)]
struct SharedState {
    /// The number of the last one.
    last: u64,
    /// What came of the next one.
    early: Vec<BytesMut>,
    /// Memory to receive into.
    buffer: Vec<u8>,
}

impl std::fmt::Debug for QuicSocketPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl QuicSocketPair {
    /// Over a socket that is connected.
    pub(in crate::transport) fn new(socket: &Socket, peer: SocketAddr, role: QuicConfig) -> io::Result<Self> {
        let udp = UdpSocketState::new(socket.into())?;
        Ok(Self { udp, peer, role, config: Arc::default(), state: Mutex::default() })
    }

    /// A new one for each connection: to it, packets of others are strange.
    pub(super) fn endpoint(&self) -> Endpoint {
        let server = match &self.role {
            QuicConfig::Connector(_) => None,
            QuicConfig::Acceptor(config) => Some(config.clone()),
        };
        Endpoint::new(self.config.clone(), server, !self.udp.may_fragment(), None)
    }

    pub(super) fn is_connector(&self) -> bool {
        matches!(self.role, QuicConfig::Connector(_))
    }

    /// The number of an opener's next connection, and how it is made.
    pub(super) fn next_connection(&self) -> Option<(u64, ClientConfig)> {
        let QuicConfig::Connector(config) = &self.role else { return None };
        let mut between = self.lock();
        between.last += 1;
        let number = between.last;
        let mut config = config.clone();
        config.initial_dst_cid_provider(Arc::new(move || initial_id(number)));
        Some((number, config))
    }

    /// Whether a connection that is waited for can have this number; then it has it.
    pub(super) fn claim_if_next(&self, number: u64) -> bool {
        let mut between = self.lock();
        let is_next = number > between.last;
        if is_next {
            between.last = number;
        }
        is_next
    }

    /// Keeps a datagram for the next connection.
    pub(super) fn save_early(&self, datagram: BytesMut) {
        let early = &mut self.lock().early;
        if early.len() < MAX_EARLY {
            early.push(datagram);
        }
    }

    /// What was kept.
    pub(super) fn take_early(&self) -> Vec<BytesMut> {
        std::mem::take(&mut self.lock().early)
    }

    /// Memory to receive into.
    pub(super) fn take_buffer(&self) -> Vec<u8> {
        let buffer = std::mem::take(&mut self.lock().buffer);
        if buffer.is_empty() { vec![0; SLOT_SIZE * RECEIVE_SLOTS] } else { buffer }
    }

    /// Leaves it to the next connection.
    pub(super) fn return_buffer(&self, buffer: Vec<u8>) {
        self.lock().buffer = buffer;
    }

    fn lock(&self) -> MutexGuard<'_, SharedState> {
        // What is guarded is whole after every step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn initial_id(number: u64) -> ConnectionId {
    let mut id = [0; INITIAL_ID_LENGTH];
    id[..8].copy_from_slice(&number.to_be_bytes());
    // Without randomness it would still be told apart from others.
    let _: rustix::io::Result<usize> = getrandom(&mut id[8..], GetRandomFlags::empty());
    ConnectionId::new(&id)
}

/// The number in a packet that begins a connection (RFC 9000, section 17.2.2).
pub(super) fn initial_number(datagram: &[u8]) -> Option<u64> {
    let (&first, rest) = datagram.split_first()?;
    let is_initial = first & 0b1011_0000 == 0b1000_0000;
    let id = rest.get(5..5 + INITIAL_ID_LENGTH)?;
    (is_initial && usize::from(rest[4]) == INITIAL_ID_LENGTH)
        .then(|| id[..8].try_into().map(u64::from_be_bytes).ok())?
}
