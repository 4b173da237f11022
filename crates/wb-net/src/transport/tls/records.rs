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

use super::super::certificate::{NAME, explained};

/// So much is encrypted at once at most: four full records.
const PART: usize = 1 << 16;

/// Of a record: its type, a version and its length.
const HEADER: usize = 5;

/// What a record adds to what it carries: header, type and tag.
const RECORD_OVERHEAD: usize = HEADER + 1 + 16;

/// The largest record as it goes over the wire.
const RECORD: usize = HEADER + (1 << 14) + 256;

/// So much is read at once at most.
const READ: usize = 4 * RECORD;

/// Bytes in order, added behind and taken away in front.
#[derive(Debug, Default)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.to]
    }

    /// Takes bytes away.
    pub(super) fn drop_front(&mut self, count: usize) {
        self.from += count;
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
    }

    /// Room behind, for so many bytes at least.
    pub(super) fn room(&mut self, wanted: usize) -> &mut [u8] {
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
    pub(super) fn added(&mut self, count: usize) {
        self.to += count;
    }
}

/// Who we are.
pub(super) enum Session {
    Opener(UnbufferedClientConnection),
    Taker(UnbufferedServerConnection),
}

/// A connection without its socket.
pub(super) struct Records {
    session: Session,
    /// What has come and is not decrypted yet.
    pub(super) incoming: Queue,
    /// What is encrypted and not sent yet.
    pub(super) outgoing: Queue,
    /// What is decrypted and not fetched yet.
    plain: Queue,
    /// Whether the other side has said that it sends no more.
    pub(super) closed: bool,
    /// How much is asked of the socket at once; grows when that is there.
    read: usize,
}

/// Where rustls stands.
enum Stand {
    /// It gave or took something, and goes on.
    Moved,
    /// It can do nothing more until something comes.
    Wants,
    /// The same, but it can encrypt.
    Open,
}

impl Records {
    pub(super) fn opener(config: Arc<ClientConfig>) -> io::Result<Self> {
        let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
        let session = UnbufferedClientConnection::new(config, name).map_err(|error| explained(&error))?;
        Ok(Self::new(Session::Opener(session)))
    }

    pub(super) fn taker(config: Arc<ServerConfig>) -> io::Result<Self> {
        let session = UnbufferedServerConnection::new(config).map_err(|error| explained(&error))?;
        Ok(Self::new(Session::Taker(session)))
    }

    fn new(session: Session) -> Self {
        let (incoming, outgoing, plain) = (Queue::default(), Queue::default(), Queue::default());
        Self { session, incoming, outgoing, plain, closed: false, read: RECORD }
    }

    /// Goes on with the handshake as far as what has come allows; says whether it is done.
    pub(super) fn shake_hands(&mut self) -> io::Result<bool> {
        loop {
            match self.go_on(&mut [])? {
                (Stand::Moved, _) => {}
                (Stand::Wants, _) if self.closed => return Err(cut_short()),
                (Stand::Wants, _) => return Ok(false),
                (Stand::Open, _) => return Ok(true),
            }
        }
    }

    /// Room for what comes from the socket.
    pub(super) fn room(&mut self) -> &mut [u8] {
        let wanted = self.read;
        let room = self.incoming.room(wanted);
        let length = room.len().min(wanted);
        &mut room[..length]
    }

    /// How much more has to come for the record that comes next, or for its header.
    pub(super) fn left_of_record(&self) -> usize {
        let mut rest = self.incoming.filled();
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
    pub(super) fn came(&mut self, count: usize) {
        self.incoming.added(count);
        if count == self.read {
            self.read = (self.read * 2).min(READ);
        }
    }

    /// Decrypts what has come; 0 if that is less than a record.
    pub(super) fn decrypt(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut done = self.plain.filled().len().min(into.len());
        into[..done].copy_from_slice(&self.plain.filled()[..done]);
        self.plain.drop_front(done);
        while done < into.len() && !self.closed && !self.incoming.is_empty() {
            match self.go_on(&mut into[done..])? {
                (Stand::Moved, moved) => done += moved,
                (Stand::Wants | Stand::Open, _) => break,
            }
        }
        Ok(done)
    }

    /// Encrypts as much as is sent at once; says how much that was.
    pub(super) fn encrypt(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(PART)];
        let length = part.len() + part.len().div_ceil(1 << 14) * RECORD_OVERHEAD;
        self.write(Write::Data(part), length)?;
        Ok(part.len())
    }

    /// Says that no more will be sent.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.write(Write::End, 2 + RECORD_OVERHEAD)
    }

    fn write(&mut self, what: Write<'_>, room: usize) -> io::Result<()> {
        // Without anything that has come: what there is stays until it is asked for.
        let out = &mut self.outgoing;
        match &mut self.session {
            Session::Opener(session) => loop {
                if write(session.process_tls_records(&mut []), &what, room, out)? {
                    return Ok(());
                }
            },
            Session::Taker(session) => loop {
                if write(session.process_tls_records(&mut []), &what, room, out)? {
                    return Ok(());
                }
            },
        }
    }

    /// One step of rustls; says how many bytes went to `into`.
    fn go_on(&mut self, into: &mut [u8]) -> io::Result<(Stand, usize)> {
        let Self { session, incoming, outgoing, plain, closed, .. } = self;
        let came = incoming.filled_mut();
        let (discard, stand) = match session {
            Session::Opener(session) => step(session.process_tls_records(came), outgoing, plain, closed, into),
            Session::Taker(session) => step(session.process_tls_records(came), outgoing, plain, closed, into),
        };
        incoming.drop_front(discard);
        stand.inspect_err(|_| self.say_why())
    }

    /// What rustls wants the other side to know of an error.
    fn say_why(&mut self) {
        let (out, mut none) = (&mut self.outgoing, [0; 0]);
        let (mut plain, mut closed) = (Queue::default(), false);
        // It says it once, and then the error again.
        let _: (usize, io::Result<(Stand, usize)>) = match &mut self.session {
            Session::Opener(session) => {
                step(session.process_tls_records(&mut []), out, &mut plain, &mut closed, &mut none)
            }
            Session::Taker(session) => {
                step(session.process_tls_records(&mut []), out, &mut plain, &mut closed, &mut none)
            }
        };
    }

    /// The session, of which no bytes are left here.
    pub(super) fn into_session(self) -> Option<Session> {
        let nothing_left = self.incoming.is_empty() && self.outgoing.is_empty() && self.plain.is_empty();
        nothing_left.then_some(self.session)
    }
}

enum Write<'a> {
    Data(&'a [u8]),
    End,
}

/// Writes when rustls is ready to; says whether it was.
fn write<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    what: &Write<'_>,
    room: usize,
    out: &mut Queue,
) -> io::Result<bool> {
    match status.state.map_err(|error| explained(&error))? {
        ConnectionState::WriteTraffic(mut traffic) => {
            let mut room = room;
            loop {
                let into = out.room(room);
                let written = match what {
                    Write::Data(bytes) => traffic.encrypt(bytes, into),
                    Write::End => traffic.queue_close_notify(into),
                };
                match written {
                    Ok(written) => {
                        out.added(written);
                        return Ok(true);
                    }
                    // It has to send something before, such as a change of keys.
                    Err(EncryptError::InsufficientSize(more)) => room = more.required_size,
                    Err(error) => return Err(io::Error::other(error)),
                }
            }
        }
        ConnectionState::Closed if matches!(what, Write::End) => Ok(true),
        ConnectionState::Closed => Err(io::ErrorKind::BrokenPipe.into()),
        state => handle(state, out).map(|_| false),
    }
}

fn step<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    out: &mut Queue,
    plain: &mut Queue,
    closed: &mut bool,
    into: &mut [u8],
) -> (usize, io::Result<(Stand, usize)>) {
    let UnbufferedStatus { mut discard, state, .. } = status;
    let stand = match state {
        Ok(ConnectionState::ReadTraffic(mut traffic)) => match traffic.next_record() {
            Some(Ok(record)) => {
                discard += record.discard;
                let (now, later) = record.payload.split_at(record.payload.len().min(into.len()));
                into[..now.len()].copy_from_slice(now);
                plain.room(later.len())[..later.len()].copy_from_slice(later);
                plain.added(later.len());
                Ok((Stand::Moved, now.len()))
            }
            Some(Err(error)) => Err(explained(&error)),
            None => Ok((Stand::Moved, 0)),
        },
        Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
            *closed = true;
            Ok((Stand::Wants, 0))
        }
        Ok(state) => handle(state, out).map(|stand| (stand, 0)),
        Err(error) => Err(explained(&error)),
    };
    (discard, stand)
}

/// What is the same whether one reads or writes.
fn handle<Data>(state: ConnectionState<'_, '_, Data>, out: &mut Queue) -> io::Result<Stand> {
    match state {
        ConnectionState::EncodeTlsData(mut data) => {
            let mut room = RECORD;
            loop {
                match data.encode(out.room(room)) {
                    Ok(written) => {
                        out.added(written);
                        return Ok(Stand::Moved);
                    }
                    Err(EncodeError::InsufficientSize(more)) => room = more.required_size,
                    Err(error) => return Err(io::Error::other(error)),
                }
            }
        }
        ConnectionState::TransmitTlsData(data) => {
            // It is in the queue, in order.
            data.done();
            Ok(Stand::Moved)
        }
        ConnectionState::WriteTraffic(_) => Ok(Stand::Open),
        ConnectionState::BlockedHandshake => Ok(Stand::Wants),
        state => Err(io::Error::other(format!("TLS is in a state that is not expected: {state:?}"))),
    }
}

/// The connection ended in the middle.
pub(super) fn cut_short() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was cut, without the end that TLS announces")
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::certificate::{connects, identity},
        *,
    };

    fn pair() -> (Records, Records) {
        let identity = identity().expect("a certificate");
        let (mut accepts, mut connects) =
            (identity.accepts().expect("valid"), connects(identity.fingerprint.clone()).expect("valid"));
        (accepts.enable_secret_extraction, connects.enable_secret_extraction) = (true, true);
        let opener = Records::opener(Arc::new(connects)).expect("it begins");
        (opener, Records::taker(Arc::new(accepts)).expect("it begins"))
    }

    /// Moves at most so many bytes at once, and of handshakes no more than the next record.
    fn carry(from: &mut Records, to: &mut Records, part: usize, by_record: bool) {
        while !from.outgoing.is_empty() {
            let limit = if by_record { to.left_of_record() } else { usize::MAX };
            let length = from.outgoing.filled().len().min(part).min(limit);
            let room = to.room();
            let length = length.min(room.len());
            room[..length].copy_from_slice(&from.outgoing.filled()[..length]);
            to.came(length);
            from.outgoing.drop_front(length);
            if by_record {
                to.shake_hands().expect("it goes on");
            }
        }
    }

    fn shake_hands(opener: &mut Records, taker: &mut Records, part: usize, by_record: bool) {
        for _ in 0..4 {
            let done = opener.shake_hands().expect("it goes on");
            carry(opener, taker, part, by_record);
            if taker.shake_hands().expect("it goes on") && done {
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
                    let (room, filled) = (taker.room(), opener.outgoing.filled());
                    let length = part.min(room.len()).min(filled.len());
                    room[..length].copy_from_slice(&filled[..length]);
                    taker.came(length);
                    opener.outgoing.drop_front(length);
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
        opener.end().expect("it can");
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
