//! Accepted connections whose cookie has not been verified yet.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use super::cookie::{self, ConnectionPurpose, Cookie, LinkKey, ReplayGuard, SessionKey};

/// How long a connection may take to send its cookie.
const COOKIE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct UnverifiedConnection {
    pub(super) socket: Socket,
    accepted_at: Instant,
    bytes: [u8; cookie::LENGTH],
    received: usize,
}

#[derive(Debug)]
pub(super) enum CookieStatus {
    Incomplete,
    /// All of it; it has not been verified.
    Complete([u8; cookie::LENGTH]),
    /// The other side closed the connection without sending anything.
    Closed,
    /// Other bytes than a cookie.
    Foreign,
}

impl UnverifiedConnection {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, accepted_at: Instant::now(), bytes: [0; cookie::LENGTH], received: 0 }
    }

    /// Whether its cookie should have arrived by now.
    pub(super) fn is_overdue(&self) -> bool {
        self.accepted_at.elapsed() > COOKIE_TIMEOUT
    }

    /// Like [`Self::receive`], but leaves other bytes than a cookie in the socket.
    pub(super) fn receive_if_cookie(&mut self) -> CookieStatus {
        // With `--one-port` what does not begin like a cookie is a control connection.
        let mut begin = [0; cookie::MAGIC.len()];
        if self.received == 0
            && let Ok((count, _)) = rustix::net::recv(&self.socket, &mut begin, RecvFlags::DONTWAIT | RecvFlags::PEEK)
            && count > 0
            && begin[..count] != cookie::MAGIC[..count]
        {
            return CookieStatus::Foreign;
        }
        self.receive()
    }

    /// Receives what has arrived, without waiting.
    pub(super) fn receive(&mut self) -> CookieStatus {
        while self.received < cookie::LENGTH {
            match rustix::net::recv(&self.socket, &mut self.bytes[self.received..], RecvFlags::DONTWAIT) {
                Ok((0, _)) if self.received == 0 => return CookieStatus::Closed,
                Ok((0, _)) => return CookieStatus::Foreign,
                Ok((count, _)) => self.received += count,
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::WOULDBLOCK) => return CookieStatus::Incomplete,
                // Reset by the other side.
                Err(_) if self.received == 0 => return CookieStatus::Closed,
                Err(_) => return CookieStatus::Foreign,
            }
            let prefix = self.received.min(cookie::MAGIC.len());
            if self.bytes[..prefix] != cookie::MAGIC[..prefix] {
                return CookieStatus::Foreign;
            }
        }
        CookieStatus::Complete(self.bytes)
    }
}

impl AsFd for UnverifiedConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[derive(Debug)]
pub(crate) struct CookieVerifier {
    session: SessionKey,
    link: LinkKey,
    guard: ReplayGuard,
}

impl CookieVerifier {
    pub(crate) fn new(session: SessionKey, link: LinkKey) -> Self {
        Self { session, link, guard: ReplayGuard::default() }
    }

    pub(super) fn session(&self) -> &SessionKey {
        &self.session
    }

    pub(super) fn link(&self) -> LinkKey {
        self.link
    }

    /// The content of a cookie that is valid for this link; of a connection, each is valid once.
    pub(super) fn verify(&mut self, bytes: &[u8; cookie::LENGTH]) -> Option<Cookie> {
        let cookie = self.session.open(bytes).filter(|cookie| cookie.link == self.link)?;
        match cookie.purpose {
            ConnectionPurpose::Connection => self.guard.accept(cookie.attempt).then_some(cookie),
            ConnectionPurpose::Probe => Some(cookie),
            ConnectionPurpose::Acknowledgement => None,
        }
    }

    pub(super) fn acknowledgement(&self, cookie: Cookie) -> [u8; cookie::LENGTH] {
        self.session.seal(&Cookie { purpose: ConnectionPurpose::Acknowledgement, ..cookie })
    }
}

/// Answers a probe with the acknowledgement of its cookie: the prober learns that it has reached the link.
pub(super) fn answer_probe(socket: &Socket, acknowledgement: &[u8; cookie::LENGTH]) {
    // Ignored: the prober has gone, or reports that it got no answer.
    let _: rustix::io::Result<usize> =
        rustix::net::send(socket, acknowledgement, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

pub(super) fn unknown_peer() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "the peer's address is unknown")
}
