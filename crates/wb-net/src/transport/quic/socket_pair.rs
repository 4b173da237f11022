//! State shared by successive connections over the same pair of sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, ConnectionId, Endpoint, EndpointConfig, NoneTokenStore, ServerConfig, TransportConfig,
    ValidationTokenConfig, VarInt,
};
use quinn_udp::UdpSocketState;
use rustix::rand::{GetRandomFlags, getrandom};
use socket2::Socket;

use super::super::certificate::{self, CertificateFingerprint};

const ALPN: &[u8] = b"weighbridge";

/// Maximum number of datagrams, or groups of them that the kernel coalesced (GRO), per receive call.
pub(super) const RECEIVE_SLOTS: usize = 4;

/// Size of a receive slot in bytes: the largest datagram or group.
pub(super) const SLOT_SIZE: usize = 1 << 16;

/// Length of the opener's first connection ID: a number and as many random bytes. No other ID has this length.
const INITIAL_ID_LENGTH: usize = 16;

/// Maximum number of datagrams that are stored for the next connection; others are retransmitted.
const MAX_EARLY: usize = 16;

#[derive(Debug, Clone)]
pub(in crate::transport) enum QuicConfig {
    Connector(ClientConfig),
    Acceptor(Arc<ServerConfig>),
}

impl QuicConfig {
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

/// Default receive window of a stream in bytes, that of quinn.
const DEFAULT_WINDOW: u32 = 1_250_000;

fn transport_config(window: Option<u32>) -> Arc<TransportConfig> {
    let window = window.unwrap_or(DEFAULT_WINDOW);
    let mut config = TransportConfig::default();
    config.max_idle_timeout(None);
    config.max_concurrent_uni_streams(VarInt::from_u32(0)).max_concurrent_bidi_streams(VarInt::from_u32(1));
    // Does not buffer more than the peer would accept.
    config.stream_receive_window(VarInt::from_u32(window)).send_window(u64::from(window));
    Arc::new(config)
}

/// Sets buffer sizes that hold all data in flight, as far as the kernel allows (`net.core.rmem_max`): packets that do
/// not fit are lost, and packet loss slows QUIC down.
pub(in crate::transport) fn set_buffer_sizes(socket: &Socket) -> io::Result<()> {
    socket.set_recv_buffer_size(DEFAULT_WINDOW as usize)?;
    socket.set_send_buffer_size(DEFAULT_WINDOW as usize)
}

/// A pair of connected sockets, seen from one side.
pub(in crate::transport) struct QuicSocketPair {
    pub(super) udp: UdpSocketState,
    pub(super) peer: SocketAddr,
    role: QuicConfig,
    config: Arc<EndpointConfig>,
    state: Mutex<SharedState>,
}

#[derive(Default)]
struct SharedState {
    /// Number of the last connection.
    last: u64,
    early: Vec<BytesMut>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for QuicSocketPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuicSocketPair").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl QuicSocketPair {
    pub(in crate::transport) fn new(socket: &Socket, peer: SocketAddr, role: QuicConfig) -> io::Result<Self> {
        let udp = UdpSocketState::new(socket.into())?;
        Ok(Self { udp, peer, role, config: Arc::default(), state: Mutex::default() })
    }

    /// A new endpoint for each connection: it ignores packets of other connections.
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

    /// The number of an opener's next connection, and its configuration.
    pub(super) fn next_connection(&self) -> Option<(u64, ClientConfig)> {
        let QuicConfig::Connector(config) = &self.role else { return None };
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        let mut config = config.clone();
        config.initial_dst_cid_provider(Arc::new(move || initial_id(number)));
        Some((number, config))
    }

    /// Assigns a number to an accepted connection, if it is newer than the last.
    pub(super) fn claim_if_next(&self, number: u64) -> bool {
        let mut state = self.lock();
        let is_next = number > state.last;
        if is_next {
            state.last = number;
        }
        is_next
    }

    pub(super) fn save_early(&self, datagram: BytesMut) {
        let early = &mut self.lock().early;
        if early.len() < MAX_EARLY {
            early.push(datagram);
        }
    }

    pub(super) fn take_early(&self) -> Vec<BytesMut> {
        std::mem::take(&mut self.lock().early)
    }

    /// Takes the receive buffer of the previous connection, or allocates one.
    pub(super) fn take_buffer(&self) -> Vec<u8> {
        let buffer = std::mem::take(&mut self.lock().buffer);
        if buffer.is_empty() { vec![0; SLOT_SIZE * RECEIVE_SLOTS] } else { buffer }
    }

    pub(super) fn return_buffer(&self, buffer: Vec<u8>) {
        self.lock().buffer = buffer;
    }

    fn lock(&self) -> MutexGuard<'_, SharedState> {
        // Ignores poisoning: the data is consistent after every step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn initial_id(number: u64) -> ConnectionId {
    let mut id = [0; INITIAL_ID_LENGTH];
    id[..8].copy_from_slice(&number.to_be_bytes());
    // Ignored: the number alone makes the ID unique.
    let _: rustix::io::Result<usize> = getrandom(&mut id[8..], GetRandomFlags::empty());
    ConnectionId::new(&id)
}

/// The number in a packet that opens a connection (RFC 9000, section 17.2.2).
pub(super) fn initial_number(datagram: &[u8]) -> Option<u64> {
    let (&first, rest) = datagram.split_first()?;
    let is_initial = first & 0b1011_0000 == 0b1000_0000;
    let id = rest.get(5..5 + INITIAL_ID_LENGTH)?;
    (is_initial && usize::from(rest[4]) == INITIAL_ID_LENGTH)
        .then(|| id[..8].try_into().map(u64::from_be_bytes).ok())?
}
