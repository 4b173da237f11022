//! Listeners, which accept connections from expected addresses only.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::{SocketFlags, acceptfrom_with};
use rustix::time::Timespec;
use socket2::Socket;

use super::address::{HostAddress, TransportAddress};
use super::socket::{self, SocketConfig};
use super::{Interest, WaitCondition};
use crate::language::Protocol;

/// A listener: a listening socket of one strand, or a strand's share of a common one.
#[derive(Debug)]
pub(super) enum Listener {
    Exclusive(ExclusiveListener),
    Shared { shared: Arc<SharedListener>, mailbox: Option<Arc<SocketQueue>>, repeated: bool },
}

impl Listener {
    /// Creates a listener through which connections are opened once or, if `repeated`, again and again.
    pub(super) fn bind(
        config: &SocketConfig<'_>,
        repeated: bool,
        listeners: &Arc<SharedListeners>,
    ) -> io::Result<Self> {
        let port = config.endpoint.port;
        let has_ports = matches!(config.endpoint.protocol, Protocol::Tcp | Protocol::Tls | Protocol::Sctp);
        // The many strands of an event loop share one port; otherwise they could take a third of all ports.
        let is_event_loop = !config.blocking && !repeated;
        if port.is_some() || (has_ports && (is_event_loop || listeners.ports.is_some())) {
            let mailbox = Some(Arc::new(SocketQueue::new()?));
            return Ok(Self::Shared { shared: listeners.listener_at(config, port)?, mailbox, repeated });
        }
        let listener = config.listen(0)?;
        let address = socket::local_address(&listener, config.local)?;
        let (listener, expected) = (Some(listener), HashSet::new());
        let close_when_done = !repeated && !config.blocking;
        Ok(Self::Exclusive(ExclusiveListener { listener, close_when_done, address, expected, refused: 0 }))
    }

    pub(super) fn address(&self) -> &TransportAddress {
        match self {
            Self::Exclusive(exclusive) => &exclusive.address,
            Self::Shared { shared, .. } => &shared.address,
        }
    }

    pub(super) fn expect_peers(&mut self, addresses: HashSet<TransportAddress>) {
        let addresses = addresses.into_iter().map(accepted_form);
        match self {
            Self::Exclusive(exclusive) => exclusive.expected = addresses.collect(),
            Self::Shared { shared, mailbox: Some(mailbox), repeated } => {
                let mut expected = lock(&shared.expected);
                expected.extend(
                    addresses.map(|address| (address, ExpectedPeer { queue: mailbox.clone(), repeated: *repeated })),
                );
            }
            Self::Shared { .. } => {}
        }
    }

    pub(super) fn accept(&mut self, blocking: bool) -> io::Result<Socket> {
        match self {
            Self::Exclusive(exclusive) => exclusive.accept(blocking),
            Self::Shared { mailbox, repeated, .. } => {
                let socket = mailbox.as_ref().ok_or_else(no_more_connections)?.pop()?;
                socket.set_nonblocking(!blocking)?;
                if !*repeated {
                    *mailbox = None;
                }
                Ok(socket)
            }
        }
    }

    pub(super) fn wait_condition(&self) -> WaitCondition {
        match self {
            Self::Exclusive(ExclusiveListener { listener: Some(listener), .. }) => WaitCondition::readable(listener),
            Self::Shared { mailbox: Some(mailbox), .. } => WaitCondition::readable(&mailbox.readable_fd),
            Self::Exclusive(_) | Self::Shared { .. } => {
                WaitCondition { fd: None, interest: Interest::Readable, until: None }
            }
        }
    }

    /// Takes the count of refused connections; a shared listener reports it once.
    pub(super) fn take_rejected(&self) -> u64 {
        match self {
            Self::Exclusive(exclusive) => exclusive.refused + exclusive.drain_unexpected(),
            Self::Shared { shared, .. } => shared.refused.swap(0, Ordering::Relaxed),
        }
    }
}

/// A listening socket of one strand.
#[derive(Debug)]
pub(super) struct ExclusiveListener {
    /// `None` once it is closed.
    listener: Option<Socket>,
    /// Whether it is closed when no more connections are expected: the many strands of an event loop need descriptors.
    close_when_done: bool,
    address: TransportAddress,
    expected: HashSet<TransportAddress>,
    refused: u64,
}

impl ExclusiveListener {
    fn accept(&mut self, blocking: bool) -> io::Result<Socket> {
        let Some(listener) = &self.listener else {
            return Err(no_more_connections());
        };
        let socket = loop {
            let (socket, from) = accept_from(listener, blocking)?;
            if self.expected.contains(&from) {
                break socket;
            }
            self.refused += 1;
        };
        if self.close_when_done {
            self.refused += self.drain_unexpected();
            self.listener = None;
        }
        Ok(socket)
    }

    /// Number of unexpected connections since the last one was accepted.
    fn drain_unexpected(&self) -> u64 {
        self.listener.as_ref().map_or(0, |listener| drain_unexpected(listener, &self.expected))
    }
}

fn no_more_connections() -> io::Error {
    io::Error::other("all expected connections have been accepted")
}

fn drain_unexpected(listener: &Socket, expected: &HashSet<TransportAddress>) -> u64 {
    let mut count = 0;
    loop {
        let mut watched = [PollFd::new(listener, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !poll(&mut watched, Some(&now)).is_ok_and(|ready| ready > 0) {
            return count;
        }
        match accept_from(listener, false) {
            Ok((_, from)) => count += u64::from(!expected.contains(&from)),
            Err(_) => return count,
        }
    }
}

fn accept_from(listener: &Socket, blocking: bool) -> io::Result<(Socket, TransportAddress)> {
    let flags = SocketFlags::CLOEXEC | if blocking { SocketFlags::empty() } else { SocketFlags::NONBLOCK };
    let (socket, from) = acceptfrom_with(listener, flags)?;
    let socket = Socket::from(socket);
    let from = match from.map(SocketAddr::try_from) {
        Some(Ok(address)) => TransportAddress::Ip(address),
        _ => non_ip_peer(&socket)?,
    };
    Ok((socket, from))
}

/// The address of a peer without an IP address.
fn non_ip_peer(socket: &Socket) -> io::Result<TransportAddress> {
    if let Some((cid, port)) = socket.peer_addr()?.as_vsock_address() {
        return Ok(TransportAddress::Vsock { cid, port });
    }
    let process = rustix::net::sockopt::socket_peercred(socket)?.pid.as_raw_nonzero().get();
    Ok(TransportAddress::Unix { name: String::new(), process: process.unsigned_abs() })
}

/// An address as it appears on accepted connections: for UNIX sockets, the kernel reports only the process.
fn accepted_form(address: TransportAddress) -> TransportAddress {
    match address {
        TransportAddress::Unix { process, .. } => TransportAddress::Unix { name: String::new(), process },
        address => address,
    }
}

/// Connections that a shared listener accepted for one strand.
#[derive(Debug)]
pub(super) struct SocketQueue {
    readable_fd: OwnedFd,
    sockets: Mutex<VecDeque<Socket>>,
}

impl SocketQueue {
    fn new() -> io::Result<Self> {
        let readable_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE)?;
        Ok(Self { readable_fd, sockets: Mutex::default() })
    }

    fn push(&self, socket: Socket) {
        lock(&self.sockets).push_back(socket);
        // Cannot fail: memory is exhausted before the counter overflows.
        let _: Result<usize, _> = rustix::io::write(&self.readable_fd, &1_u64.to_ne_bytes());
    }

    fn pop(&self) -> io::Result<Socket> {
        let mut count = [0; 8];
        rustix::io::read(&self.readable_fd, &mut count)?;
        lock(&self.sockets).pop_front().ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

/// A listening socket whose port several strands share; a thread accepts its connections.
#[derive(Debug)]
pub(super) struct SharedListener {
    address: TransportAddress,
    expected: Mutex<HashMap<TransportAddress, ExpectedPeer>>,
    refused: AtomicU64,
}

/// The strand that a connection from an address is for, and whether more will follow.
#[derive(Debug)]
struct ExpectedPeer {
    queue: Arc<SocketQueue>,
    repeated: bool,
}

/// Pause after descriptors ran out.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(1);

/// The listeners that the strands of a process share, and the allowed ports.
#[derive(Debug)]
pub struct SharedListeners {
    ports: Option<RangeInclusive<u16>>,
    shared: Mutex<HashMap<(Protocol, HostAddress, u16), Arc<SharedListener>>>,
    shutdown_fd: Arc<OwnedFd>,
}

impl SharedListeners {
    /// Creates the set; `ports` restricts the ports to listen on.
    pub fn new(ports: Option<RangeInclusive<u16>>) -> io::Result<Arc<Self>> {
        let shutdown_fd = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Arc::new(Self { ports, shared: Mutex::default(), shutdown_fd }))
    }

    /// The port for datagram sockets, and whether they share it.
    pub(super) fn datagram_port(&self) -> (u16, bool) {
        self.ports.as_ref().map_or((0, false), |ports| (*ports.end(), true))
    }

    /// The listener on a port, or on any of the allowed ones.
    fn listener_at(&self, config: &SocketConfig<'_>, port: Option<u16>) -> io::Result<Arc<SharedListener>> {
        let protocol = config.endpoint.protocol;
        let mut shared = lock(&self.shared);
        if let Some(listener) = shared.get(&(protocol, config.local, port.unwrap_or(0))) {
            return Ok(listener.clone());
        }
        let candidates = port.map_or_else(|| self.ports.clone().unwrap_or(0..=0), |port| port..=port);
        let mut last = None;
        for candidate in candidates.clone() {
            match config.listen(candidate) {
                Ok(listener) => {
                    let shared_listener = SharedListener::open(listener, config, self.shutdown_fd.clone())?;
                    shared.insert((protocol, config.local, port.unwrap_or(0)), shared_listener.clone());
                    return Ok(shared_listener);
                }
                Err(error) => last = Some(error),
            }
        }
        let error = last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into());
        if port.is_none() && self.ports.is_none() {
            return Err(error);
        }
        let ports = match port {
            Some(port) => format!("port {port}"),
            None => format!("a port of {}-{}", candidates.start(), candidates.end()),
        };
        Err(io::Error::new(error.kind(), format!("cannot listen on {ports} ({}): {error}", protocol.name())))
    }
}

impl Drop for SharedListeners {
    fn drop(&mut self) {
        // Ends the threads of shared listeners.
        let _: Result<usize, _> = rustix::io::write(&*self.shutdown_fd, &1_u64.to_ne_bytes());
    }
}

impl SharedListener {
    fn open(listener: Socket, config: &SocketConfig<'_>, shutdown_fd: Arc<OwnedFd>) -> io::Result<Arc<Self>> {
        let address = socket::local_address(&listener, config.local)?;
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Self { address, expected: Mutex::default(), refused: AtomicU64::new(0) });
        let acceptor = shared.clone();
        thread::Builder::new()
            .name("listener".to_owned())
            .spawn(move || acceptor.accept_loop(&listener, &shutdown_fd))?;
        Ok(shared)
    }

    fn dispatch(&self, socket: Socket, from: TransportAddress) {
        match lock(&self.expected).entry(from) {
            Entry::Occupied(expected) if expected.get().repeated => expected.get().queue.push(socket),
            Entry::Occupied(expected) => expected.remove().queue.push(socket),
            Entry::Vacant(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn accept_loop(&self, listener: &Socket, shutdown_fd: &OwnedFd) {
        loop {
            let mut watched = [
                PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(shutdown_fd.as_fd(), PollFlags::IN),
            ];
            if poll(&mut watched, None).is_err() {
                continue;
            }
            if !watched[1].revents().is_empty() {
                return;
            }
            loop {
                match accept_from(listener, true) {
                    Ok((socket, from)) => self.dispatch(socket, from),
                    Err(error) => {
                        if error.raw_os_error() == Some(libc::EMFILE) {
                            thread::sleep(ACCEPT_BACKOFF);
                        }
                        break;
                    }
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Ignores poisoning: the data is consistent after every step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
