//! Listeners, which accept the connections of a session only.
//!
//! A connection is accepted once its cookie has been verified ([`cookie`](super::cookie)). Until then it is neither
//! counted nor answered, and delays no other one.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::time::Timespec;
use socket2::Socket;

use super::address::TransportAddress;
use super::cookie::ConnectionPurpose;
use super::data_ports::{DataPorts, Registration};
use super::shared_listener::SharedListener;
use super::socket::{self, SocketConfig};
use super::unverified::{CookieStatus, CookieVerifier, UnverifiedConnection, answer_probe};
use super::{Interest, WaitCondition};

/// A connection that has been accepted, with its number among those that the other side opened.
#[derive(Debug)]
pub(super) struct AcceptedConnection {
    pub(super) socket: Socket,
    pub(super) ordinal: u32,
}

/// A listener: a listening socket of one strand, or a strand's share of a common one.
#[derive(Debug)]
pub(super) enum Listener {
    Exclusive(Box<ExclusiveListener>),
    Shared(SharedLink),
}

/// A strand's share of a listener.
#[derive(Debug)]
pub(super) struct SharedLink {
    /// `None` once the only connection has been accepted: the many strands of an event loop need the descriptors.
    registration: Option<Registration>,
    repeated: bool,
    /// `None` if the control port accepts the connections.
    listener: Option<Arc<SharedListener>>,
    address: TransportAddress,
}

impl Listener {
    /// Creates a listener. A strand that may block has a socket of its own, unless the port is given or limited.
    pub(super) fn bind(
        config: &SocketConfig<'_>,
        verifier: CookieVerifier,
        (can_block, repeated): (bool, bool),
        ports: &Arc<DataPorts>,
    ) -> io::Result<Self> {
        let port = config.endpoint.port;
        if can_block && port.is_none() && !(config.has_ports() && ports.is_limited()) {
            let listener = config.listen(0)?;
            let address = socket::local_address(&listener, config.local)?;
            let (unverified, verified) = (VecDeque::new(), VecDeque::new());
            return Ok(Self::Exclusive(Box::new(ExclusiveListener {
                listener,
                address,
                verifier,
                unverified,
                verified,
                rejected: 0,
            })));
        }
        let (listener, address) = ports.listen(config)?;
        let registration = Some(ports.register(verifier, config.endpoint)?);
        Ok(Self::Shared(SharedLink { registration, repeated, listener, address }))
    }

    pub(super) fn address(&self) -> &TransportAddress {
        match self {
            Self::Exclusive(exclusive) => &exclusive.address,
            Self::Shared(shared) => &shared.address,
        }
    }

    pub(super) fn accept(&mut self, blocking: bool) -> io::Result<AcceptedConnection> {
        match self {
            Self::Exclusive(exclusive) => exclusive.accept(),
            Self::Shared(shared) => {
                let registration = shared.registration.as_ref();
                let registration = registration.ok_or_else(|| io::Error::other("the connection has been accepted"))?;
                let accepted = registration.queue().pop()?;
                accepted.socket.set_nonblocking(!blocking)?;
                if !shared.repeated {
                    shared.registration = None;
                }
                Ok(accepted)
            }
        }
    }

    /// Answers probes of a strand that has not started yet; returns whether that must be repeated.
    pub(super) fn answer_probes(&mut self) -> bool {
        match self {
            Self::Exclusive(exclusive) => {
                exclusive.verify_waiting();
                true
            }
            // The thread of the shared listener does.
            Self::Shared(_) => false,
        }
    }

    pub(super) fn wait_condition(&self) -> WaitCondition {
        match self {
            Self::Exclusive(exclusive) => WaitCondition::readable(&exclusive.listener),
            Self::Shared(SharedLink { registration: Some(registration), .. }) => {
                WaitCondition::readable(registration.queue())
            }
            Self::Shared(_) => WaitCondition { fd: None, interest: Interest::Readable, until: None },
        }
    }

    /// Takes the count of rejected connections; a shared listener reports it once.
    pub(super) fn take_rejected(&mut self) -> u64 {
        match self {
            Self::Exclusive(exclusive) => {
                exclusive.verify_waiting();
                std::mem::take(&mut exclusive.rejected)
            }
            Self::Shared(shared) => shared.listener.as_ref().map_or(0, |listener| listener.take_rejected()),
        }
    }
}

/// Maximum number of unverified connections of a listener; beyond it, the oldest is closed. Where the queue of a
/// listening socket overflows, as many lose their cookie, which is sent again after a retransmission timeout.
const MAX_UNVERIFIED: usize = 8192;

/// The blocking listening socket of one strand.
#[derive(Debug)]
pub(super) struct ExclusiveListener {
    listener: Socket,
    address: TransportAddress,
    verifier: CookieVerifier,
    unverified: VecDeque<UnverifiedConnection>,
    verified: VecDeque<AcceptedConnection>,
    rejected: u64,
}

impl ExclusiveListener {
    fn accept(&mut self) -> io::Result<AcceptedConnection> {
        loop {
            if let Some(accepted) = self.verified.pop_front() {
                return Ok(accepted);
            }
            if self.unverified.is_empty() {
                self.accept_next()?;
            } else {
                self.wait_for_cookies()?;
            }
        }
    }

    /// Accepts the next connection, and verifies it if its cookie has arrived with it.
    fn accept_next(&mut self) -> io::Result<()> {
        let socket = loop {
            match accept_with(&self.listener, SocketFlags::CLOEXEC) {
                // Connections of strangers may hold the descriptors.
                Err(Errno::MFILE) if self.close_oldest() => {}
                accepted => break Socket::from(accepted?),
            }
        };
        let mut connection = UnverifiedConnection::new(socket);
        match connection.receive() {
            CookieStatus::Incomplete => {
                let is_overdue = self.unverified.front().is_some_and(UnverifiedConnection::is_overdue);
                if is_overdue || self.unverified.len() == MAX_UNVERIFIED {
                    self.close_oldest();
                }
                self.unverified.push_back(connection);
            }
            status => self.conclude(connection, status),
        }
        Ok(())
    }

    /// Closes the oldest unverified connection; false if there is none.
    fn close_oldest(&mut self) -> bool {
        let has_closed = self.unverified.pop_front().is_some();
        self.rejected += u64::from(has_closed);
        has_closed
    }

    fn conclude(&mut self, connection: UnverifiedConnection, status: CookieStatus) {
        match status {
            CookieStatus::Complete(bytes) => match self.verifier.verify(&bytes) {
                Some(cookie) if cookie.purpose == ConnectionPurpose::Connection => {
                    self.verified.push_back(AcceptedConnection { socket: connection.socket, ordinal: cookie.ordinal });
                }
                Some(cookie) => answer_probe(&connection.socket, &self.verifier.acknowledgement(cookie)),
                None => self.rejected += 1,
            },
            CookieStatus::Foreign => self.rejected += 1,
            CookieStatus::Incomplete | CookieStatus::Closed => {}
        }
    }

    fn wait_for_cookies(&mut self) -> io::Result<()> {
        let mut watched: Vec<PollFd<'_>> = vec![PollFd::new(&self.listener, PollFlags::IN)];
        watched.extend(self.unverified.iter().map(|connection| PollFd::new(connection, PollFlags::IN)));
        poll(&mut watched, None)?;
        let mut ready = watched.iter().map(|watched| !watched.revents().is_empty()).collect::<VecDeque<_>>();
        let is_waiting = ready.pop_front().unwrap_or(false);
        self.receive_cookies(ready);
        if is_waiting { self.accept_next() } else { Ok(()) }
    }

    /// Does not wait.
    fn verify_waiting(&mut self) {
        let is_ready = |socket: &dyn AsFd| {
            let mut watched = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut watched, Some(&now)).is_ok_and(|ready| ready > 0)
        };
        while is_ready(&self.listener) && self.accept_next().is_ok() {}
        self.receive_cookies(std::iter::repeat_n(true, self.unverified.len()));
    }

    /// Receives from the unverified connections that are ready, oldest first; incomplete ones keep their order.
    fn receive_cookies(&mut self, ready: impl IntoIterator<Item = bool>) {
        for is_ready in ready {
            let Some(mut connection) = self.unverified.pop_front() else { break };
            match if is_ready { connection.receive() } else { CookieStatus::Incomplete } {
                CookieStatus::Incomplete => self.unverified.push_back(connection),
                status => self.conclude(connection, status),
            }
        }
    }
}

pub(super) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Ignores poisoning: the data is consistent after every step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
