//! QUIC with an event loop of its own: one connection with one stream, on a pair of connected UDP sockets.
//!
//! The caller does what a kernel does for TCP: each call receives what has arrived, handles timers and sends what may
//! be sent. A strand that is busy otherwise, for instance with a think, does not respond meanwhile; between
//! transactions [`Transport::maintain`] does. There is no idle timeout.
//!
//! Successive connections on the same sockets are distinguished by a number that the opener puts into the first
//! connection ID: packets of an earlier connection are dropped, early packets of the next one are stored for it.

mod socket_pair;

use std::io::{self, ErrorKind, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, ReadError, StreamEvent,
    StreamId, TransportErrorCode, VarInt, WriteError,
};
use quinn_udp::RecvMeta;
use rustls::{AlertDescription, CertificateError, Error};
use socket2::Socket;

pub(super) use self::socket_pair::{QuicConfig, QuicSocketPair, set_buffer_sizes};
use self::socket_pair::{RECEIVE_SLOTS, SLOT_SIZE};
use super::{CloseMode, Intent, Interest, Transport, WaitCondition, certificate, cookie};
use crate::engine::clock;
use wb_net_profile::Message;
use wb_results::net::ConnectionInfo;

/// The first byte that the opener sends, so that the other side learns of the stream and may use it first.
const GREETING: &[u8] = &[0];

/// Maximum number of packets per system call: more would arrive faster than a receive buffer is emptied.
const MAX_SEGMENTS: usize = 10;

pub(super) struct Quic {
    socket: Socket,
    socket_pair: Arc<QuicSocketPair>,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Number of the connection on this link; 0 as long as the accepting side does not know it.
    number: u64,
    is_connector: bool,
    stream: Option<StreamId>,
    connected: bool,
    /// Whether we have finished sending, and the other side has acknowledged that.
    finished: bool,
    finish_acknowledged: bool,
    lost: Option<ConnectionError>,
    receive_buffer: Vec<u8>,
    /// The packets to send next, if the socket did not accept them.
    outgoing: Vec<u8>,
    pending_transmit: Option<quinn_proto::Transmit>,
    timeout: Option<Instant>,
}

impl Quic {
    pub(super) fn new(socket: Socket, socket_pair: Arc<QuicSocketPair>) -> io::Result<Self> {
        let mut endpoint = socket_pair.endpoint();
        let (mut connection, mut number) = (None, 0);
        let is_connector = socket_pair.is_connector();
        if let Some((next, config)) = socket_pair.next_connection() {
            number = next;
            let result = endpoint.connect(Instant::now(), config, socket_pair.peer, certificate::SERVER_NAME);
            connection = Some(result.map_err(io::Error::other)?);
        }
        let receive_buffer = socket_pair.take_buffer();
        let mut this = Self {
            socket,
            socket_pair,
            endpoint,
            connection,
            number,
            is_connector,
            stream: None,
            connected: false,
            finished: false,
            finish_acknowledged: false,
            lost: None,
            receive_buffer,
            outgoing: Vec::new(),
            pending_transmit: None,
            timeout: None,
        };
        this.transmit();
        for datagram in this.socket_pair.take_early() {
            this.handle_datagram(datagram, None);
        }
        Ok(this)
    }

    /// Receives, handles timers and events, and sends; returns whether anything arrived.
    fn drive(&mut self) -> io::Result<bool> {
        let arrived = self.receive_datagrams()?;
        if self.timeout.is_some_and(|timeout| timeout <= Instant::now())
            && let Some((_, connection)) = &mut self.connection
        {
            connection.handle_timeout(Instant::now());
        }
        self.poll_events();
        self.transmit();
        Ok(arrived)
    }

    fn receive_datagrams(&mut self) -> io::Result<bool> {
        let mut metas = [RecvMeta::default(); RECEIVE_SLOTS];
        let mut buffer = std::mem::take(&mut self.receive_buffer);
        let mut slots = buffer.chunks_exact_mut(SLOT_SIZE);
        let mut slices: [IoSliceMut<'_>; RECEIVE_SLOTS] =
            std::array::from_fn(|_| IoSliceMut::new(slots.next().unwrap_or_default()));
        let count = self.socket_pair.udp.recv((&self.socket).into(), &mut slices, &mut metas);
        let count = match count {
            // The other side's socket did not exist yet when a packet was sent; QUIC retransmits.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(Some(0)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            count => count.map(Some),
        };
        if let Ok(Some(count)) = count {
            for (meta, slice) in metas[..count].iter().zip(&slices) {
                let mut datagrams = BytesMut::from(&slice[..meta.len]);
                while !datagrams.is_empty() {
                    let datagram = datagrams.split_to(meta.stride.min(datagrams.len()));
                    self.handle_datagram(datagram, meta.ecn);
                }
            }
        }
        self.receive_buffer = buffer;
        Ok(count?.is_some())
    }

    fn handle_datagram(&mut self, datagram: BytesMut, ecn: Option<quinn_udp::EcnCodepoint>) {
        if cookie::resembles_cookie(&datagram) {
            // A late copy of the one that set up the link.
            return;
        }
        if let Some(number) = socket_pair::initial_number(&datagram) {
            if self.number == 0 && self.socket_pair.claim_if_next(number) {
                self.number = number;
            }
            if number != self.number {
                if number > self.number {
                    // The other side has opened the next connection: no more packets of this one will come.
                    self.socket_pair.save_early(datagram);
                    self.lost.get_or_insert(ConnectionError::Reset);
                }
                return;
            }
        }
        let ecn = ecn.and_then(|ecn| quinn_proto::EcnCodepoint::from_bits(ecn as u8));
        let now = Instant::now();
        // The endpoint's responses to packets of unknown connections are not sent.
        let mut discarded = Vec::new();
        match self.endpoint.handle(now, self.socket_pair.peer, None, ecn, datagram, &mut discarded) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, now, &mut discarded, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(error) => self.lost = Some(error.cause),
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    fn poll_events(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                Event::Stream(StreamEvent::Finished { .. } | StreamEvent::Stopped { .. }) => {
                    self.finish_acknowledged = true
                }
                _ => {}
            }
        }
    }

    fn transmit(&mut self) {
        let Some((_, connection)) = &mut self.connection else { return };
        loop {
            if let Some(pending) = &self.pending_transmit {
                let transmit = quinn_udp::Transmit {
                    destination: pending.destination,
                    ecn: pending.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
                    contents: &self.outgoing[..pending.size],
                    segment_size: pending.segment_size,
                    src_ip: None,
                };
                if self.socket_pair.udp.send((&self.socket).into(), &transmit).is_err() {
                    // The socket's buffer is full; quinn-udp treats other errors as packet loss.
                    break;
                }
            }
            self.outgoing.clear();
            let max_segments = self.socket_pair.udp.max_gso_segments().min(MAX_SEGMENTS);
            self.pending_transmit = connection.poll_transmit(Instant::now(), max_segments, &mut self.outgoing);
            if self.pending_transmit.is_none() {
                break;
            }
        }
        self.timeout = connection.poll_timeout();
    }

    /// Reads from the stream what has arrived; `None` when the other side has finished.
    fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else { return Ok(Some(0)) };
        let mut stream = connection.recv_stream(stream);
        // A stream that was read to its end no longer exists.
        let Ok(mut chunks) = stream.read(true) else { return Ok(None) };
        let mut filled = 0;
        while filled < into.len() {
            match chunks.next(into.len() - filled) {
                Ok(Some(chunk)) => {
                    into[filled..filled + chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                    filled += chunk.bytes.len();
                }
                Ok(None) if filled == 0 => return Ok(None),
                Ok(None) | Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(_)) => return Err(ErrorKind::ConnectionReset.into()),
            }
        }
        if chunks.finalize().should_transmit() {
            self.transmit();
        }
        Ok(Some(filled))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else { return Ok(0) };
        let written = match connection.send_stream(stream).write(bytes) {
            Ok(written) => written,
            Err(WriteError::Blocked) => 0,
            Err(error) => return Err(io::Error::new(ErrorKind::BrokenPipe, error.to_string())),
        };
        self.transmit();
        Ok(written)
    }

    fn check_connection(&self) -> io::Result<()> {
        self.lost.as_ref().map_or(Ok(()), |reason| Err(to_io_error(reason)))
    }

    /// Discards all received data, so that the other side may send more; returns whether that was the end.
    fn discard_received(&mut self) -> io::Result<bool> {
        let mut rest = [0; 4096];
        loop {
            match self.read(&mut rest)? {
                None => return Ok(true),
                Some(0) => return Ok(false),
                Some(_) => {}
            }
        }
    }

    /// Opens or accepts the stream; returns whether it exists.
    fn ensure_stream(&mut self) -> io::Result<bool> {
        let Some((_, connection)) = &mut self.connection else { return Ok(false) };
        if self.stream.is_some() || !self.connected {
            return Ok(self.stream.is_some());
        }
        if self.is_connector {
            self.stream = connection.streams().open(Dir::Bi);
            return Ok(self.write(GREETING)? == GREETING.len());
        }
        self.stream = connection.streams().accept(Dir::Bi);
        let mut greeting = [0; GREETING.len()];
        if self.stream.is_some() && self.read(&mut greeting)? != Some(GREETING.len()) {
            return Err(io::Error::new(ErrorKind::InvalidData, "QUIC: unexpected first byte from the peer"));
        }
        Ok(self.stream.is_some())
    }
}

impl Transport for Quic {
    fn send(&mut self, bytes: &[u8], _: &Message) -> io::Result<usize> {
        loop {
            self.check_connection()?;
            let written = self.write(bytes)?;
            if written > 0 {
                return Ok(written);
            }
            if !self.drive()? {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
    }

    fn receive(&mut self, into: &mut [u8], _: &Message) -> io::Result<usize> {
        loop {
            match self.read(into)? {
                Some(0) => {}
                Some(read) => return Ok(read),
                None => return Ok(0),
            }
            if matches!(self.lost, Some(ConnectionError::ApplicationClosed(_))) {
                return Ok(0);
            }
            self.check_connection()?;
            if !self.drive()? {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
    }

    fn establish(&mut self) -> io::Result<()> {
        loop {
            if self.ensure_stream()? {
                return Ok(());
            }
            let arrived = self.drive()?;
            self.check_connection()?;
            if !arrived && !self.ensure_stream()? {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
    }

    fn maintain(&mut self) -> bool {
        while self.drive().is_ok_and(|arrived| arrived) {}
        self.lost.is_none()
    }

    fn wait_condition(&self, _: Intent) -> WaitCondition {
        let interest = if self.pending_transmit.is_some() { Interest::Both } else { Interest::Readable };
        let until =
            self.timeout.map(|timeout| clock::now() + clock::nanos(timeout.saturating_duration_since(Instant::now())));
        WaitCondition { fd: Some(self.socket.as_raw_fd()), interest, until }
    }

    /// Waits until the other side has received everything, which the kernel does for other protocols.
    fn close(&mut self, mode: CloseMode) -> io::Result<()> {
        if !self.finished {
            self.finished = true;
            if let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) {
                // Fails if the other side stopped the stream, and then there is nothing to wait for.
                self.finish_acknowledged = connection.send_stream(stream).finish().is_err();
            }
            self.transmit();
        }
        loop {
            let has_ended = mode == CloseMode::Acceptor || self.discard_received()?;
            let done = has_ended && (mode == CloseMode::Connector || self.finish_acknowledged);
            if done || self.lost.is_some() {
                break;
            }
            if !self.drive()? {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
        if mode == CloseMode::Connector
            && let Some((_, connection)) = &mut self.connection
        {
            connection.close(Instant::now(), VarInt::from_u32(0), Bytes::new());
            self.transmit();
        }
        Ok(())
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Statistics of the path; lost packets count as retransmitted segments.
    fn path_info(&self) -> ConnectionInfo {
        let mut info = ConnectionInfo { connections: 1, ..ConnectionInfo::default() };
        if let Some((_, connection)) = &self.connection {
            let path = connection.stats().path;
            info.retransmits = path.lost_packets;
            info.rtt_ns = clock::nanos(path.rtt);
            info.rtt_max_ns = info.rtt_ns;
        }
        info
    }
}

impl Drop for Quic {
    fn drop(&mut self) {
        self.socket_pair.return_buffer(std::mem::take(&mut self.receive_buffer));
    }
}

fn to_io_error(reason: &ConnectionError) -> io::Error {
    let mismatch = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
    let denied = TransportErrorCode::crypto(u8::from(AlertDescription::AccessDenied));
    match reason {
        ConnectionError::TransportError(error) if error.code == denied => certificate::to_io_error(&mismatch),
        ConnectionError::TransportError(error) => io::Error::new(ErrorKind::InvalidData, format!("QUIC: {error}")),
        ConnectionError::ApplicationClosed(_) => {
            io::Error::new(ErrorKind::BrokenPipe, "the peer closed the QUIC connection")
        }
        ConnectionError::ConnectionClosed(close) => {
            io::Error::new(ErrorKind::ConnectionAborted, format!("the peer closed the QUIC connection: {close}"))
        }
        ConnectionError::Reset => {
            io::Error::new(ErrorKind::ConnectionReset, "the peer no longer has this QUIC connection")
        }
        reason => io::Error::new(ErrorKind::ConnectionAborted, format!("QUIC: {reason}")),
    }
}
