//! QUIC, in our own loop: one connection with one stream, on a pair of UDP sockets that know each other.
//!
//! What a kernel does for TCP is done here by whoever uses the connection: each call takes in what has come, lets
//! timers expire and sends what may be sent. A strand that does something else for long, as thinking, answers nobody
//! meanwhile; between transactions [`Transport::tend`] does it. No timeout of idleness is agreed on.
//!
//! Connections that follow each other on the same sockets are told apart by a number that the opener puts into the
//! first connection id: what is left of an earlier one is dropped, what comes early of the next one is kept for it.

mod socket_pair;

use std::{
    io::{self, ErrorKind, IoSliceMut},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    sync::Arc,
    time::Instant,
};

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
use super::{ConnectionInfo, Intent, Interest, Transport, WaitCondition, certificate};
use crate::{engine::clock, language::Message};

/// What the opener sends first, so that the other side knows the stream and may be the first to use it.
const GREETING: &[u8] = &[0];

/// So many packets go out in one system call at most: more would arrive faster than a receive buffer is emptied.
const MAX_SEGMENTS: usize = 10;

/// A connection.
pub(super) struct Quic {
    socket: Socket,
    socket_pair: Arc<QuicSocketPair>,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Of the connections over this link; 0 as long as a taker does not know.
    number: u64,
    is_connector: bool,
    stream: Option<StreamId>,
    connected: bool,
    /// Whether we have said that we send no more, and the other side knows.
    finished: bool,
    finish_acknowledged: bool,
    lost: Option<ConnectionError>,
    receive_buffer: Vec<u8>,
    /// What is to be sent next, if the socket did not take it.
    outgoing: Vec<u8>,
    pending_transmit: Option<quinn_proto::Transmit>,
    timeout: Option<Instant>,
}

impl Quic {
    /// Begins the next connection over a link, or waits for it.
    pub(super) fn new(socket: Socket, link: Arc<QuicSocketPair>) -> io::Result<Self> {
        let mut endpoint = link.endpoint();
        let (mut connection, mut number) = (None, 0);
        let opener = link.is_connector();
        if let Some((next, config)) = link.next_connection() {
            number = next;
            let made = endpoint.connect(Instant::now(), config, link.peer, certificate::SERVER_NAME);
            connection = Some(made.map_err(io::Error::other)?);
        }
        let came = link.take_buffer();
        let mut this = Self {
            socket,
            socket_pair: link,
            endpoint,
            connection,
            number,
            is_connector: opener,
            stream: None,
            connected: false,
            finished: false,
            finish_acknowledged: false,
            lost: None,
            receive_buffer: came,
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

    /// Does all that is to be done now; says whether anything came.
    fn drive(&mut self) -> io::Result<bool> {
        let came = self.receive_datagrams()?;
        if self.timeout.is_some_and(|timeout| timeout <= Instant::now())
            && let Some((_, connection)) = &mut self.connection
        {
            connection.handle_timeout(Instant::now());
        }
        self.poll_events();
        self.transmit();
        Ok(came)
    }

    fn receive_datagrams(&mut self) -> io::Result<bool> {
        let mut metas = [RecvMeta::default(); RECEIVE_SLOTS];
        let mut came = std::mem::take(&mut self.receive_buffer);
        let mut slots = came.chunks_exact_mut(SLOT_SIZE);
        let mut parts: [IoSliceMut<'_>; RECEIVE_SLOTS] =
            std::array::from_fn(|_| IoSliceMut::new(slots.next().unwrap_or_default()));
        let count = self.socket_pair.udp.recv((&self.socket).into(), &mut parts, &mut metas);
        let count = match count {
            // The other side's socket was not there when something was sent; what matters is sent again.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(Some(0)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            count => count.map(Some),
        };
        if let Ok(Some(count)) = count {
            for (meta, part) in metas[..count].iter().zip(&parts) {
                let mut datagrams = BytesMut::from(&part[..meta.len]);
                while !datagrams.is_empty() {
                    let datagram = datagrams.split_to(meta.stride.min(datagrams.len()));
                    self.handle_datagram(datagram, meta.ecn);
                }
            }
        }
        self.receive_buffer = came;
        Ok(count?.is_some())
    }

    fn handle_datagram(&mut self, datagram: BytesMut, ecn: Option<quinn_udp::EcnCodepoint>) {
        if let Some(number) = socket_pair::initial_number(&datagram) {
            if self.number == 0 && self.socket_pair.claim_if_next(number) {
                self.number = number;
            }
            if number != self.number {
                if number > self.number {
                    // The other side has gone on: what it did not say of this connection it will not say any more.
                    self.socket_pair.save_early(datagram);
                    self.lost.get_or_insert(ConnectionError::Reset);
                }
                return;
            }
        }
        let ecn = ecn.and_then(|ecn| quinn_proto::EcnCodepoint::from_bits(ecn as u8));
        let now = Instant::now();
        // What the endpoint itself would answer to packets of no connection is not sent.
        let mut unsaid = Vec::new();
        match self.endpoint.handle(now, self.socket_pair.peer, None, ecn, datagram, &mut unsaid) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, now, &mut unsaid, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(error) => self.lost = Some(error.cause),
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// Hears what the connection has to say.
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

    /// Sends what may be sent.
    fn transmit(&mut self) {
        let Some((_, connection)) = &mut self.connection else { return };
        loop {
            if let Some(unsent) = &self.pending_transmit {
                let transmit = quinn_udp::Transmit {
                    destination: unsent.destination,
                    ecn: unsent.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
                    contents: &self.outgoing[..unsent.size],
                    segment_size: unsent.segment_size,
                    src_ip: None,
                };
                if self.socket_pair.udp.send((&self.socket).into(), &transmit).is_err() {
                    // The socket is full, the only error there is: others are losses.
                    break;
                }
            }
            self.outgoing.clear();
            let most = self.socket_pair.udp.max_gso_segments().min(MAX_SEGMENTS);
            self.pending_transmit = connection.poll_transmit(Instant::now(), most, &mut self.outgoing);
            if self.pending_transmit.is_none() {
                break;
            }
        }
        self.timeout = connection.poll_timeout();
    }

    /// Reads what has come of the stream, at most what there is room for; nothing when the other side has finished.
    fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else { return Ok(Some(0)) };
        let mut stream = connection.recv_stream(stream);
        // A stream that is read to its end is known no more.
        let Ok(mut chunks) = stream.read(true) else { return Ok(None) };
        let mut done = 0;
        while done < into.len() {
            match chunks.next(into.len() - done) {
                Ok(Some(chunk)) => {
                    into[done..done + chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                    done += chunk.bytes.len();
                }
                Ok(None) if done == 0 => return Ok(None),
                Ok(None) | Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(_)) => return Err(ErrorKind::ConnectionReset.into()),
            }
        }
        if chunks.finalize().should_transmit() {
            self.transmit();
        }
        Ok(Some(done))
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

    /// Fails if the connection is lost.
    fn check_connection(&self) -> io::Result<()> {
        self.lost.as_ref().map_or(Ok(()), |reason| Err(to_io_error(reason)))
    }

    /// Opens the stream, or takes it; says whether it is there.
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
            return Err(io::Error::new(ErrorKind::InvalidData, "QUIC: the other side did not begin as agreed"));
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
            let came = self.drive()?;
            self.check_connection()?;
            if !came && !self.ensure_stream()? {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
    }

    fn maintain(&mut self) -> bool {
        while self.drive().is_ok_and(|came| came) {}
        self.lost.is_none()
    }

    fn wait_condition(&self, _: Intent) -> WaitCondition {
        let interest = if self.pending_transmit.is_some() { Interest::Both } else { Interest::Readable };
        let until =
            self.timeout.map(|timeout| clock::now() + clock::nanos(timeout.saturating_duration_since(Instant::now())));
        WaitCondition { fd: Some(self.socket.as_raw_fd()), interest, until }
    }

    /// Waits until all that was sent has come to the other side, which the kernel does for other protocols.
    fn close(&mut self, opener: bool) -> io::Result<()> {
        if !self.finished {
            self.finished = true;
            if let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) {
                // It fails where the other side stopped it, and then there is nothing to wait for.
                self.finish_acknowledged = connection.send_stream(stream).finish().is_err();
            }
            self.transmit();
        }
        let mut rest = [0; 4096];
        loop {
            let done = if opener { self.read(&mut rest)?.is_none() } else { self.finish_acknowledged };
            if done || self.lost.is_some() {
                break;
            }
            if !self.drive()? {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
        if opener && let Some((_, connection)) = &mut self.connection {
            connection.close(Instant::now(), VarInt::from_u32(0), Bytes::new());
            self.transmit();
        }
        Ok(())
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Packets that were lost count as segments that were sent again.
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
    let refused = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
    let denied = TransportErrorCode::crypto(u8::from(AlertDescription::AccessDenied));
    match reason {
        ConnectionError::TransportError(error) if error.code == denied => certificate::to_io_error(&refused),
        ConnectionError::TransportError(error) => io::Error::new(ErrorKind::InvalidData, format!("QUIC: {error}")),
        ConnectionError::ApplicationClosed(_) => {
            io::Error::new(ErrorKind::BrokenPipe, "the other side ended the QUIC connection")
        }
        ConnectionError::ConnectionClosed(why) => {
            io::Error::new(ErrorKind::ConnectionAborted, format!("the other side ended QUIC: {why}"))
        }
        ConnectionError::Reset => {
            io::Error::new(ErrorKind::ConnectionReset, "the other side knows this QUIC connection no more")
        }
        reason => io::Error::new(ErrorKind::ConnectionAborted, format!("QUIC: {reason}")),
    }
}
