//! The TLS record layer between buffers: data from the socket goes in, data for the socket comes out.
//!
//! Uses rustls without its internal buffers, so that one system call reads or writes many records.

use std::io;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{ClientConfig, ServerConfig};

use super::super::certificate::{SERVER_NAME, to_io_error};

/// Maximum number of bytes that are encrypted at once: four full records.
const MAX_PLAINTEXT: usize = 1 << 16;

/// Length of a record's header: type, version and length.
const HEADER: usize = 5;

/// Overhead of a record in bytes: header, inner type and tag.
const RECORD_OVERHEAD: usize = HEADER + 1 + 16;

const MAX_RECORD: usize = HEADER + (1 << 14) + 256;

const MAX_READ: usize = 4 * MAX_RECORD;

/// A byte queue: appended at the back, consumed at the front.
#[derive(Debug, Default)]
pub(super) struct ByteQueue {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl ByteQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.to]
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.from += count;
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
    }

    /// Returns free space at the back, of at least this size.
    pub(super) fn reserve(&mut self, size: usize) -> &mut [u8] {
        if self.bytes.len() - self.to < size && self.from > 0 {
            self.bytes.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        if self.bytes.len() - self.to < size {
            self.bytes.resize(self.to + size, 0);
        }
        &mut self.bytes[self.to..]
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.commit(bytes.len());
    }

    /// Appends bytes that were written into the space from [`Self::reserve`].
    pub(super) fn commit(&mut self, count: usize) {
        self.to += count;
    }
}

pub(super) enum TlsSession {
    Connector(UnbufferedClientConnection),
    Acceptor(UnbufferedServerConnection),
}

/// TLS record layer: encrypts and decrypts between buffers, without a socket.
pub(super) struct RecordLayer {
    session: TlsSession,
    /// Received bytes that are not decrypted yet.
    pub(super) incoming: ByteQueue,
    /// Encrypted bytes that are not sent yet.
    pub(super) outgoing: ByteQueue,
    /// Decrypted bytes that are not fetched yet.
    plain: ByteQueue,
    /// Whether the other side has sent a close_notify alert.
    pub(super) closed: bool,
    /// Bytes per read from the socket; doubled whenever a read is full.
    read_size: usize,
}

/// The result of one step of rustls.
enum RecordStatus {
    /// It produced or consumed something, and can continue.
    Progressed,
    Blocked,
    /// It needs more input, but can encrypt.
    Ready,
}

impl RecordLayer {
    pub(super) fn connector(config: Arc<ClientConfig>) -> io::Result<Self> {
        let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
        let session = UnbufferedClientConnection::new(config, name).map_err(|error| to_io_error(&error))?;
        Ok(Self::new(TlsSession::Connector(session)))
    }

    pub(super) fn acceptor(config: Arc<ServerConfig>) -> io::Result<Self> {
        let session = UnbufferedServerConnection::new(config).map_err(|error| to_io_error(&error))?;
        Ok(Self::new(TlsSession::Acceptor(session)))
    }

    fn new(session: TlsSession) -> Self {
        let (incoming, outgoing, plain) = (ByteQueue::default(), ByteQueue::default(), ByteQueue::default());
        Self { session, incoming, outgoing, plain, closed: false, read_size: MAX_RECORD }
    }

    /// Continues the handshake as far as the received data allows; returns whether it is complete.
    pub(super) fn handshake(&mut self) -> io::Result<bool> {
        loop {
            match self.process(&mut [])? {
                (RecordStatus::Progressed, _) => {}
                // Messages and the other side's end may have arrived with the last part of the handshake.
                (RecordStatus::Blocked, _) if self.closed && !self.is_handshaking() => return Ok(true),
                (RecordStatus::Blocked, _) if self.closed => return Err(truncated_error()),
                (RecordStatus::Blocked, _) => return Ok(false),
                (RecordStatus::Ready, _) => return Ok(true),
            }
        }
    }

    fn is_handshaking(&self) -> bool {
        match &self.session {
            TlsSession::Connector(session) => session.is_handshaking(),
            TlsSession::Acceptor(session) => session.is_handshaking(),
        }
    }

    pub(super) fn receive_buffer(&mut self) -> &mut [u8] {
        let size = self.read_size;
        let room = self.incoming.reserve(size);
        let length = room.len().min(size);
        &mut room[..length]
    }

    /// Bytes missing from the next record, or from its header.
    pub(super) fn remaining_in_record(&self) -> usize {
        let mut rest = self.incoming.as_slice();
        loop {
            let &[_, _, _, high, low, ..] = rest else { return HEADER - rest.len() };
            let length = HEADER + usize::from(u16::from_be_bytes([high, low]));
            match rest.get(length..) {
                Some(next) if !next.is_empty() => rest = next,
                Some(_) => return HEADER,
                None => return length - rest.len(),
            }
        }
    }

    pub(super) fn commit_received(&mut self, count: usize) {
        self.incoming.commit(count);
        if count == self.read_size {
            self.read_size = (self.read_size * 2).min(MAX_READ);
        }
    }

    /// Decrypts received data; 0 if that is less than a record.
    pub(super) fn decrypt(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = self.plain.as_slice().len().min(into.len());
        into[..filled].copy_from_slice(&self.plain.as_slice()[..filled]);
        self.plain.consume(filled);
        while filled < into.len() && !self.closed && !self.incoming.is_empty() {
            match self.process(&mut into[filled..])? {
                (RecordStatus::Progressed, moved) => filled += moved,
                (RecordStatus::Blocked | RecordStatus::Ready, _) => break,
            }
        }
        Ok(filled)
    }

    /// Encrypts up to the maximum that is sent at once; returns how many bytes that was.
    pub(super) fn encrypt(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(MAX_PLAINTEXT)];
        let length = part.len() + part.len().div_ceil(1 << 14) * RECORD_OVERHEAD;
        self.write_records(WriteRequest::Data(part), length)?;
        Ok(part.len())
    }

    pub(super) fn queue_close_notify(&mut self) -> io::Result<()> {
        self.write_records(WriteRequest::CloseNotify, 2 + RECORD_OVERHEAD)
    }

    fn write_records(&mut self, request: WriteRequest<'_>, room: usize) -> io::Result<()> {
        // Passes no input: received data stays until it is read.
        let out = &mut self.outgoing;
        match &mut self.session {
            TlsSession::Connector(session) => loop {
                if write_when_ready(session.process_tls_records(&mut []), &request, room, out)? {
                    return Ok(());
                }
            },
            TlsSession::Acceptor(session) => loop {
                if write_when_ready(session.process_tls_records(&mut []), &request, room, out)? {
                    return Ok(());
                }
            },
        }
    }

    /// Performs one step of rustls; returns how many bytes were written to `into`.
    fn process(&mut self, into: &mut [u8]) -> io::Result<(RecordStatus, usize)> {
        let Self { session, incoming, outgoing, plain, closed, .. } = self;
        let received = incoming.as_mut_slice();
        let (discard, result) = match session {
            TlsSession::Connector(session) => {
                process_status(session.process_tls_records(received), outgoing, plain, closed, into)
            }
            TlsSession::Acceptor(session) => {
                process_status(session.process_tls_records(received), outgoing, plain, closed, into)
            }
        };
        incoming.consume(discard);
        result.inspect_err(|_| self.queue_alert())
    }

    fn queue_alert(&mut self) {
        let (out, mut nothing) = (&mut self.outgoing, [0; 0]);
        let (mut plain, mut closed) = (ByteQueue::default(), false);
        // Ignored: rustls produces the alert once, and then repeats the error.
        let _: (usize, io::Result<(RecordStatus, usize)>) = match &mut self.session {
            TlsSession::Connector(session) => {
                process_status(session.process_tls_records(&mut []), out, &mut plain, &mut closed, &mut nothing)
            }
            TlsSession::Acceptor(session) => {
                process_status(session.process_tls_records(&mut []), out, &mut plain, &mut closed, &mut nothing)
            }
        };
    }

    /// The session, if no bytes are left in the buffers.
    pub(super) fn into_session(self) -> Option<TlsSession> {
        let nothing_left = self.incoming.is_empty() && self.outgoing.is_empty() && self.plain.is_empty();
        nothing_left.then_some(self.session)
    }
}

enum WriteRequest<'a> {
    Data(&'a [u8]),
    CloseNotify,
}

/// Writes if rustls is ready for it; returns whether it was.
fn write_when_ready<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    request: &WriteRequest<'_>,
    room: usize,
    out: &mut ByteQueue,
) -> io::Result<bool> {
    match status.state.map_err(|error| to_io_error(&error))? {
        ConnectionState::WriteTraffic(mut traffic) => {
            let mut room = room;
            loop {
                let into = out.reserve(room);
                let written = match request {
                    WriteRequest::Data(bytes) => traffic.encrypt(bytes, into),
                    WriteRequest::CloseNotify => traffic.queue_close_notify(into),
                };
                match written {
                    Ok(written) => {
                        out.commit(written);
                        return Ok(true);
                    }
                    // Something else must be sent first, such as a key update.
                    Err(EncryptError::InsufficientSize(more)) => room = more.required_size,
                    Err(error) => return Err(io::Error::other(error)),
                }
            }
        }
        ConnectionState::Closed if matches!(request, WriteRequest::CloseNotify) => Ok(true),
        ConnectionState::Closed => Err(io::ErrorKind::BrokenPipe.into()),
        state => handle_common_state(state, out).map(|_| false),
    }
}

fn process_status<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    out: &mut ByteQueue,
    plain: &mut ByteQueue,
    closed: &mut bool,
    into: &mut [u8],
) -> (usize, io::Result<(RecordStatus, usize)>) {
    let UnbufferedStatus { mut discard, state, .. } = status;
    let result = match state {
        Ok(ConnectionState::ReadTraffic(mut traffic)) => match traffic.next_record() {
            Some(Ok(record)) => {
                discard += record.discard;
                let (now, later) = record.payload.split_at(record.payload.len().min(into.len()));
                into[..now.len()].copy_from_slice(now);
                plain.reserve(later.len())[..later.len()].copy_from_slice(later);
                plain.commit(later.len());
                Ok((RecordStatus::Progressed, now.len()))
            }
            Some(Err(error)) => Err(to_io_error(&error)),
            None => Ok((RecordStatus::Progressed, 0)),
        },
        Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
            *closed = true;
            Ok((RecordStatus::Blocked, 0))
        }
        Ok(state) => handle_common_state(state, out).map(|status| (status, 0)),
        Err(error) => Err(to_io_error(&error)),
    };
    (discard, result)
}

fn handle_common_state<Data>(state: ConnectionState<'_, '_, Data>, out: &mut ByteQueue) -> io::Result<RecordStatus> {
    match state {
        ConnectionState::EncodeTlsData(mut data) => {
            let mut room = MAX_RECORD;
            loop {
                match data.encode(out.reserve(room)) {
                    Ok(written) => {
                        out.commit(written);
                        return Ok(RecordStatus::Progressed);
                    }
                    Err(EncodeError::InsufficientSize(more)) => room = more.required_size,
                    Err(error) => return Err(io::Error::other(error)),
                }
            }
        }
        ConnectionState::TransmitTlsData(data) => {
            // The data is already queued, in order.
            data.done();
            Ok(RecordStatus::Progressed)
        }
        ConnectionState::WriteTraffic(_) => Ok(RecordStatus::Ready),
        ConnectionState::BlockedHandshake => Ok(RecordStatus::Blocked),
        state => Err(io::Error::other(format!("unexpected TLS state: {state:?}"))),
    }
}

pub(super) fn truncated_error() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed without a TLS close_notify alert")
}

#[cfg(test)]
mod tests {
    use super::super::super::certificate::{client_config, server_certificate};
    use super::*;

    fn pair() -> (RecordLayer, RecordLayer) {
        let certificate = server_certificate().expect("a certificate");
        let (mut server_config, mut client_config) = (
            certificate.server_config().expect("valid"),
            client_config(certificate.fingerprint.clone()).expect("valid"),
        );
        (server_config.enable_secret_extraction, client_config.enable_secret_extraction) = (true, true);
        let connector = RecordLayer::connector(Arc::new(client_config)).expect("it begins");
        (connector, RecordLayer::acceptor(Arc::new(server_config)).expect("it begins"))
    }

    /// Moves the outgoing bytes in parts of limited size; with `by_record` no more than the next record of a handshake.
    fn carry(from: &mut RecordLayer, to: &mut RecordLayer, part: usize, by_record: bool) {
        while !from.outgoing.is_empty() {
            let limit = if by_record { to.remaining_in_record() } else { usize::MAX };
            let length = from.outgoing.as_slice().len().min(part).min(limit);
            let room = to.receive_buffer();
            let length = length.min(room.len());
            room[..length].copy_from_slice(&from.outgoing.as_slice()[..length]);
            to.commit_received(length);
            from.outgoing.consume(length);
            if by_record {
                to.handshake().expect("it continues");
            }
        }
    }

    fn shake_hands(connector: &mut RecordLayer, acceptor: &mut RecordLayer, part: usize, by_record: bool) {
        for _ in 0..4 {
            let done = connector.handshake().expect("it continues");
            carry(connector, acceptor, part, by_record);
            if acceptor.handshake().expect("it continues") && done {
                return;
            }
            carry(acceptor, connector, part, by_record);
        }
        panic!("the handshake does not end");
    }

    #[test]
    fn bytes_arrive_unchanged_however_they_are_split() {
        for part in [1, 7, 1000, 40_000] {
            let (mut connector, mut acceptor) = pair();
            shake_hands(&mut connector, &mut acceptor, usize::MAX, false);
            let bytes: Vec<u8> = (0..100_000_u32).map(|number| (number / 7) as u8).collect();
            let (mut sent, mut received) = (0, Vec::new());
            while received.len() < bytes.len() {
                sent += connector.encrypt(&bytes[sent..]).expect("it can");
                while !connector.outgoing.is_empty() {
                    let (room, filled) = (acceptor.receive_buffer(), connector.outgoing.as_slice());
                    let length = part.min(room.len()).min(filled.len());
                    room[..length].copy_from_slice(&filled[..length]);
                    acceptor.commit_received(length);
                    connector.outgoing.consume(length);
                    let mut into = [0; 3000];
                    loop {
                        match acceptor.decrypt(&mut into).expect("it can") {
                            0 => break,
                            count => received.extend_from_slice(&into[..count]),
                        }
                    }
                }
            }
            assert!(received == bytes, "in parts of {part}");
        }
    }

    #[test]
    fn the_end_is_announced_and_earlier_data_is_not_lost() {
        let (mut connector, mut acceptor) = pair();
        shake_hands(&mut connector, &mut acceptor, usize::MAX, false);
        connector.encrypt(b"last").expect("it can");
        connector.queue_close_notify().expect("it can");
        carry(&mut connector, &mut acceptor, usize::MAX, false);
        let mut into = [0; 3];
        assert_eq!(acceptor.decrypt(&mut into).expect("it can"), 3);
        assert_eq!(acceptor.decrypt(&mut into).expect("it can"), 1);
        assert_eq!(acceptor.decrypt(&mut into).expect("it can"), 0);
        assert!(acceptor.closed);
    }

    #[test]
    fn no_bytes_are_left_when_the_kernel_takes_over() {
        let (mut connector, mut acceptor) = pair();
        shake_hands(&mut connector, &mut acceptor, usize::MAX, true);
        assert!(connector.into_session().is_some() && acceptor.into_session().is_some());
    }
}
