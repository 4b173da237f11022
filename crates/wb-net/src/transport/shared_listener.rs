//! A listening socket that several strands share: a thread accepts its connections and verifies their cookies.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{io, thread};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::time::Timespec;
use socket2::Socket;
use tokio::sync::mpsc::Sender;

use super::address::TransportAddress;
use super::data_ports::{Dispatch, Routes};
use super::unverified::{CookieStatus, UnverifiedConnection};

/// Maximum number of unverified connections; beyond it, the oldest is closed.
const MAX_UNVERIFIED: usize = 8192;

/// Pause after descriptors ran out.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(1);

/// Maximum number of events per `epoll_wait`.
const MAX_EVENTS: usize = 256;

/// epoll tokens of the listening socket and of the shutdown; connections count up from the next one.
const LISTENER_TOKEN: u64 = 0;
const SHUTDOWN_TOKEN: u64 = 1;
const FIRST_CONNECTION: u64 = 2;

/// A listening socket whose port several strands share. Its thread ends when it is dropped.
#[derive(Debug)]
pub struct SharedListener {
    pub(super) address: TransportAddress,
    rejected: Arc<AtomicU64>,
    shutdown: OwnedFd,
}

impl SharedListener {
    /// Starts the thread that accepts connections; those that do not begin with a cookie go to `control`, if given.
    pub(super) fn start(
        listener: Socket,
        address: TransportAddress,
        routes: Weak<Routes>,
        control: Option<Sender<Socket>>,
    ) -> io::Result<Arc<Self>> {
        listener.set_nonblocking(true)?;
        let shutdown = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let rejected = Arc::new(AtomicU64::new(0));
        let mut acceptor = Acceptor::new(listener, &shutdown, routes, control, rejected.clone())?;
        let (started, is_started) = std::sync::mpsc::channel();
        thread::Builder::new().name("listener".to_owned()).spawn(move || {
            // Ignored: nobody waits any more.
            let _: Result<(), _> = started.send(());
            acceptor.run();
        })?;
        // So that the thread is there, with its name, when the caller continues.
        is_started.recv().map_err(io::Error::other)?;
        Ok(Arc::new(Self { address, rejected, shutdown }))
    }

    pub(super) fn take_rejected(&self) -> u64 {
        self.rejected.swap(0, Ordering::Relaxed)
    }
}

impl Drop for SharedListener {
    fn drop(&mut self) {
        // Ends the thread.
        let _: Result<usize, _> = rustix::io::write(&self.shutdown, &1_u64.to_ne_bytes());
    }
}

struct Acceptor {
    listener: Socket,
    epoll: OwnedFd,
    /// Kept open, since it is watched.
    _shutdown: OwnedFd,
    routes: Weak<Routes>,
    control: Option<Sender<Socket>>,
    rejected: Arc<AtomicU64>,
    /// Connections whose cookie is not checked yet, by token, the oldest first.
    unverified: BTreeMap<u64, UnverifiedConnection>,
    next_token: u64,
}

impl Acceptor {
    fn new(
        listener: Socket,
        shutdown: &OwnedFd,
        routes: Weak<Routes>,
        control: Option<Sender<Socket>>,
        rejected: Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let shutdown = shutdown.try_clone()?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER_TOKEN), epoll::EventFlags::IN)?;
        epoll::add(&epoll, &shutdown, epoll::EventData::new_u64(SHUTDOWN_TOKEN), epoll::EventFlags::IN)?;
        let (unverified, next_token) = (BTreeMap::new(), FIRST_CONNECTION);
        Ok(Self { listener, epoll, _shutdown: shutdown, routes, control, rejected, unverified, next_token })
    }

    fn run(&mut self) {
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; MAX_EVENTS];
        loop {
            let timeout = (!self.unverified.is_empty()).then_some(Timespec { tv_sec: 1, tv_nsec: 0 });
            // A signal ends the wait early.
            let count = epoll::wait(&self.epoll, &mut events[..], timeout.as_ref()).unwrap_or(0);
            for event in &events[..count] {
                match event.data.u64() {
                    SHUTDOWN_TOKEN => return,
                    LISTENER_TOKEN => self.accept_waiting(),
                    token => self.verify(token),
                }
            }
            self.close_overdue();
        }
    }

    fn accept_waiting(&mut self) {
        loop {
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => self.add(Socket::from(socket)),
                Err(Errno::WOULDBLOCK) => return,
                Err(Errno::MFILE) if self.unverified.pop_first().is_some() => self.reject(),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    thread::sleep(ACCEPT_BACKOFF);
                    return;
                }
                // Of a connection that was reset before it was accepted.
                Err(_) => {}
            }
        }
    }

    /// Verifies a connection at once if its cookie has arrived with it, otherwise watches it.
    fn add(&mut self, socket: Socket) {
        let mut connection = UnverifiedConnection::new(socket);
        let status = receive(&mut connection, self.control.is_some());
        if !matches!(status, CookieStatus::Incomplete) {
            return self.conclude(connection, status);
        }
        let token = self.next_token;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        if epoll::add(&self.epoll, &connection, epoll::EventData::new_u64(token), flags).is_err() {
            self.reject();
            return;
        }
        self.next_token += 1;
        if self.unverified.len() == MAX_UNVERIFIED {
            self.unverified.pop_first();
            self.reject();
        }
        self.unverified.insert(token, connection);
    }

    fn verify(&mut self, token: u64) {
        let is_control = self.control.is_some();
        let Some(connection) = self.unverified.get_mut(&token) else { return };
        let status = receive(connection, is_control);
        if !matches!(status, CookieStatus::Incomplete)
            && let Some(connection) = self.unverified.remove(&token)
        {
            // The strand watches the connection from now on.
            let _: rustix::io::Result<()> = epoll::delete(&self.epoll, connection.as_fd());
            self.conclude(connection, status);
        }
    }

    fn conclude(&self, connection: UnverifiedConnection, status: CookieStatus) {
        let dispatch = match status {
            CookieStatus::Complete(bytes) => match self.routes.upgrade() {
                Some(routes) => routes.dispatch(connection.socket, &bytes),
                None => return,
            },
            CookieStatus::Foreign => match &self.control {
                // Closed if too many wait already.
                Some(control) => return drop(control.try_send(connection.socket)),
                None => Dispatch::Rejected,
            },
            CookieStatus::Closed | CookieStatus::Incomplete => return,
        };
        if dispatch == Dispatch::Rejected {
            self.reject();
        }
    }

    fn close_overdue(&mut self) {
        while let Some(entry) = self.unverified.first_entry()
            && entry.get().is_overdue()
        {
            entry.remove();
            self.reject();
        }
    }

    fn reject(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }
}

/// Receives what has arrived of a cookie; where control connections arrive too, their bytes stay in the socket.
fn receive(connection: &mut UnverifiedConnection, is_control_port: bool) -> CookieStatus {
    if is_control_port { connection.receive_if_cookie() } else { connection.receive() }
}
