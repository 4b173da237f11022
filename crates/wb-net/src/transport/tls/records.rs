//! TLS between buffers: what has come from the socket goes in, what has to be sent comes out.
//!
//! rustls is used without its own buffers, so that many records are read and written by one system call.

use std::{io, sync::Arc};

use rustls::{
    ClientConfig, ServerConfig,
    client::UnbufferedClientConnection,
    pki_types::ServerName,
    server::UnbufferedServerConnection,
    unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus},
};

use super::super::certificate::{SERVER_NAME, to_io_error};

/// So much is encrypted at once at most: four full records.
const MAX_PLAINTEXT: usize = 1 << 16;

/// Of a record: its type, a version and its length.
const HEADER: usize = 5;

/// What a record adds to what it carries: header, type and tag.
const RECORD_OVERHEAD: usize = HEADER + 1 + 16;

/// The largest record as it goes over the wire.
const MAX_RECORD: usize = HEADER + (1 << 14) + 256;

/// So much is read at once at most.
const MAX_READ: usize = 4 * MAX_RECORD;

/// Bytes in order, added behind and taken away in front.
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

    /// Takes bytes away.
    pub(super) fn consume(&mut self, count: usize) {
        self.from += count;
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
    }

    /// Room behind, for so many bytes at least.
    pub(super) fn reserve(&mut self, wanted: usize) -> &mut [u8] {
        if self.bytes.len() - self.to < wanted && self.from > 0 {
            self.bytes.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        if self.bytes.len() - self.to < wanted {
            self.bytes.resize(self.to + wanted, 0);
        }
        &mut self.bytes[self.to..]
    }

    /// Says that so many bytes were put into the room.
    pub(super) fn commit(&mut self, count: usize) {
        self.to += count;
    }
}

/// Who we are.
pub(super) enum TlsSession {
    Connector(UnbufferedClientConnection),
    Acceptor(UnbufferedServerConnection),
}

/// TLS record layer: encrypts and decrypts between buffers, without a socket.
pub(super) struct RecordLayer {
    session: TlsSession,
    /// What has come and is not decrypted yet.
    pub(super) incoming: ByteQueue,
    /// What is encrypted and not sent yet.
    pub(super) outgoing: ByteQueue,
    /// What is decrypted and not fetched yet.
    plain: ByteQueue,
    /// Whether the other side has said that it sends no more.
    pub(super) closed: bool,
    /// How much is asked of the socket at once; grows when that is there.
    read_size: usize,
}

/// Where rustls stands.
enum RecordStatus {
    /// It gave or took something, and goes on.
    Progressed,
    /// It can do nothing more until something comes.
    Blocked,
    /// The same, but it can encrypt.
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

    /// Goes on with the handshake as far as what has come allows; says whether it is done.
    pub(super) fn handshake(&mut self) -> io::Result<bool> {
        loop {
            match self.process(&mut [])? {
                (RecordStatus::Progressed, _) => {}
                (RecordStatus::Blocked, _) if self.closed => return Err(truncated_error()),
                (RecordStatus::Blocked, _) => return Ok(false),
                (RecordStatus::Ready, _) => return Ok(true),
            }
        }
    }

    /// Room for what comes from the socket.
    pub(super) fn receive_buffer(&mut self) -> &mut [u8] {
        let wanted = self.read_size;
        let room = self.incoming.reserve(wanted);
        let length = room.len().min(wanted);
        &mut room[..length]
    }

    /// How much more has to come for the record that comes next, or for its header.
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

    /// So much of the room was filled.
    pub(super) fn commit_received(&mut self, count: usize) {
        self.incoming.commit(count);
        if count == self.read_size {
            self.read_size = (self.read_size * 2).min(MAX_READ);
        }
    }

    /// Decrypts what has come; 0 if that is less than a record.
    pub(super) fn decrypt(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut done = self.plain.as_slice().len().min(into.len());
        into[..done].copy_from_slice(&self.plain.as_slice()[..done]);
        self.plain.consume(done);
        while done < into.len() && !self.closed && !self.incoming.is_empty() {
            match self.process(&mut into[done..])? {
                (RecordStatus::Progressed, moved) => done += moved,
                (RecordStatus::Blocked | RecordStatus::Ready, _) => break,
            }
        }
        Ok(done)
    }

    /// Encrypts as much as is sent at once; says how much that was.
    pub(super) fn encrypt(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(MAX_PLAINTEXT)];
        let length = part.len() + part.len().div_ceil(1 << 14) * RECORD_OVERHEAD;
        self.write_records(WriteRequest::Data(part), length)?;
        Ok(part.len())
    }

    /// Says that no more will be sent.
    pub(super) fn queue_close_notify(&mut self) -> io::Result<()> {
        self.write_records(WriteRequest::CloseNotify, 2 + RECORD_OVERHEAD)
    }

    fn write_records(&mut self, what: WriteRequest<'_>, room: usize) -> io::Result<()> {
        // Without anything that has come: what there is stays until it is asked for.
        let out = &mut self.outgoing;
        match &mut self.session {
            TlsSession::Connector(session) => loop {
                if write_when_ready(session.process_tls_records(&mut []), &what, room, out)? {
                    return Ok(());
                }
            },
            TlsSession::Acceptor(session) => loop {
                if write_when_ready(session.process_tls_records(&mut []), &what, room, out)? {
                    return Ok(());
                }
            },
        }
    }

    /// One step of rustls; says how many bytes went to `into`.
    fn process(&mut self, into: &mut [u8]) -> io::Result<(RecordStatus, usize)> {
        let Self { session, incoming, outgoing, plain, closed, .. } = self;
        let came = incoming.as_mut_slice();
        let (discard, stand) = match session {
            TlsSession::Connector(session) => {
                process_status(session.process_tls_records(came), outgoing, plain, closed, into)
            }
            TlsSession::Acceptor(session) => {
                process_status(session.process_tls_records(came), outgoing, plain, closed, into)
            }
        };
        incoming.consume(discard);
        stand.inspect_err(|_| self.queue_alert())
    }

    /// What rustls wants the other side to know of an error.
    fn queue_alert(&mut self) {
        let (out, mut none) = (&mut self.outgoing, [0; 0]);
        let (mut plain, mut closed) = (ByteQueue::default(), false);
        // It says it once, and then the error again.
        let _: (usize, io::Result<(RecordStatus, usize)>) = match &mut self.session {
            TlsSession::Connector(session) => {
                process_status(session.process_tls_records(&mut []), out, &mut plain, &mut closed, &mut none)
            }
            TlsSession::Acceptor(session) => {
                process_status(session.process_tls_records(&mut []), out, &mut plain, &mut closed, &mut none)
            }
        };
    }

    /// The session, of which no bytes are left here.
    pub(super) fn into_session(self) -> Option<TlsSession> {
        let nothing_left = self.incoming.is_empty() && self.outgoing.is_empty() && self.plain.is_empty();
        nothing_left.then_some(self.session)
    }
}

enum WriteRequest<'a> {
    Data(&'a [u8]),
    CloseNotify,
}

/// Writes when rustls is ready to; says whether it was.
fn write_when_ready<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    what: &WriteRequest<'_>,
    room: usize,
    out: &mut ByteQueue,
) -> io::Result<bool> {
    match status.state.map_err(|error| to_io_error(&error))? {
        ConnectionState::WriteTraffic(mut traffic) => {
            let mut room = room;
            loop {
                let into = out.reserve(room);
                let written = match what {
                    WriteRequest::Data(bytes) => traffic.encrypt(bytes, into),
                    WriteRequest::CloseNotify => traffic.queue_close_notify(into),
                };
                match written {
                    Ok(written) => {
                        out.commit(written);
                        return Ok(true);
                    }
                    // It has to send something before, such as a change of keys.
                    Err(EncryptError::InsufficientSize(more)) => room = more.required_size,
                    Err(error) => return Err(io::Error::other(error)),
                }
            }
        }
        ConnectionState::Closed if matches!(what, WriteRequest::CloseNotify) => Ok(true),
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
    let stand = match state {
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
        Ok(state) => handle_common_state(state, out).map(|stand| (stand, 0)),
        Err(error) => Err(to_io_error(&error)),
    };
    (discard, stand)
}

/// What is the same whether one reads or writes.
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
            // It is in the queue, in order.
            data.done();
            Ok(RecordStatus::Progressed)
        }
        ConnectionState::WriteTraffic(_) => Ok(RecordStatus::Ready),
        ConnectionState::BlockedHandshake => Ok(RecordStatus::Blocked),
        state => Err(io::Error::other(format!("TLS is in a state that is not expected: {state:?}"))),
    }
}

/// The connection ended in the middle.
pub(super) fn truncated_error() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was cut, without the end that TLS announces")
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::certificate::{client_config, server_certificate},
        *,
    };

    fn pair() -> (RecordLayer, RecordLayer) {
        let identity = server_certificate().expect("a certificate");
        let (mut accepts, mut connects) =
            (identity.server_config().expect("valid"), client_config(identity.fingerprint.clone()).expect("valid"));
        (accepts.enable_secret_extraction, connects.enable_secret_extraction) = (true, true);
        let opener = RecordLayer::connector(Arc::new(connects)).expect("it begins");
        (opener, RecordLayer::acceptor(Arc::new(accepts)).expect("it begins"))
    }

    /// Moves at most so many bytes at once, and of handshakes no more than the next record.
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
                to.handshake().expect("it goes on");
            }
        }
    }

    fn shake_hands(opener: &mut RecordLayer, taker: &mut RecordLayer, part: usize, by_record: bool) {
        for _ in 0..4 {
            let done = opener.handshake().expect("it goes on");
            carry(opener, taker, part, by_record);
            if taker.handshake().expect("it goes on") && done {
                return;
            }
            carry(taker, opener, part, by_record);
        }
        panic!("the handshake does not end");
    }

    #[test]
    fn bytes_come_through_however_they_are_cut() {
        for part in [1, 7, 1000, 40_000] {
            let (mut opener, mut taker) = pair();
            shake_hands(&mut opener, &mut taker, usize::MAX, false);
            let bytes: Vec<u8> = (0..100_000_u32).map(|number| (number / 7) as u8).collect();
            let (mut sent, mut received) = (0, Vec::new());
            while received.len() < bytes.len() {
                sent += opener.encrypt(&bytes[sent..]).expect("it can");
                while !opener.outgoing.is_empty() {
                    let (room, filled) = (taker.receive_buffer(), opener.outgoing.as_slice());
                    let length = part.min(room.len()).min(filled.len());
                    room[..length].copy_from_slice(&filled[..length]);
                    taker.commit_received(length);
                    opener.outgoing.consume(length);
                    let mut into = [0; 3000];
                    loop {
                        match taker.decrypt(&mut into).expect("it can") {
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
    fn the_end_is_told_and_what_came_before_it_is_not_lost() {
        let (mut opener, mut taker) = pair();
        shake_hands(&mut opener, &mut taker, usize::MAX, false);
        opener.encrypt(b"last").expect("it can");
        opener.queue_close_notify().expect("it can");
        carry(&mut opener, &mut taker, usize::MAX, false);
        let mut into = [0; 3];
        assert_eq!(taker.decrypt(&mut into).expect("it can"), 3);
        assert_eq!(taker.decrypt(&mut into).expect("it can"), 1);
        assert_eq!(taker.decrypt(&mut into).expect("it can"), 0);
        assert!(taker.closed);
    }

    #[test]
    fn nothing_is_left_behind_when_the_kernel_takes_over() {
        let (mut opener, mut taker) = pair();
        shake_hands(&mut opener, &mut taker, usize::MAX, true);
        assert!(opener.into_session().is_some() && taker.into_session().is_some());
    }
}
