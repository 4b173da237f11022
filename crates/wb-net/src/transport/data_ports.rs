//! The ports on which a process accepts data connections, and which link each connection is for.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, Weak};

use rustix::event::{EventfdFlags, eventfd};
use serde::{Deserialize, Serialize};
use socket2::Socket;
use tokio::sync::mpsc::{Receiver, channel};

use super::address::{HostAddress, TransportAddress};
use super::cookie::{self, ConnectionPurpose, Cookie, LinkKey};
use super::datagram_port::DatagramPort;
use super::handover::{HandedOver, HandoverSender};
use super::link::is_paired;
use super::listener::{AcceptedConnection, lock};
pub use super::shared_listener::SharedListener;
use super::socket::{self, SocketConfig};
use super::unverified::{CookieVerifier, answer_probe};
use wb_net_profile::{Endpoint, Protocol};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PortPolicy {
    #[default]
    Any,
    Range(RangeInclusive<u16>),
    /// The port of the control connection, which also offers the data connections that it accepts.
    Control(u16),
}

impl PortPolicy {
    /// Whether a profile may name this port.
    fn allows(&self, port: u16) -> bool {
        match self {
            Self::Any => true,
            Self::Range(range) => range.contains(&port),
            Self::Control(control) => *control == port,
        }
    }
}

impl std::fmt::Display for PortPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("any port"),
            Self::Range(range) => write!(f, "{}-{}", range.start(), range.end()),
            Self::Control(port) => port.fmt(f),
        }
    }
}

/// Maximum number of control connections that wait to be accepted; further ones are closed.
const MAX_WAITING_CONTROL: usize = 256;

/// The data ports of a process, which all its sessions share.
#[derive(Debug)]
pub struct DataPorts {
    policy: PortPolicy,
    /// Whether another process owns the ports, and hands over the connections that belong to this one.
    owned_elsewhere: bool,
    // All sessions share the ports, because a cookie says which session a connection is for. Where the ports are
    // limited, processes of strands accept nothing themselves.
    routes: Arc<Routes>,
    listeners: Mutex<HashMap<(Protocol, HostAddress, u16), Weak<SharedListener>>>,
    datagram_ports: Mutex<HashMap<(Protocol, HostAddress, u16), Weak<DatagramPort>>>,
}

impl DataPorts {
    pub fn new(policy: PortPolicy) -> Arc<Self> {
        let (routes, listeners, datagram_ports) = Default::default();
        Arc::new(Self { policy, owned_elsewhere: false, routes, listeners, datagram_ports })
    }

    /// Creates the set of a child process. Limited ports are owned by its parent, which hands connections over.
    pub fn of_child(policy: PortPolicy) -> Arc<Self> {
        let owned_elsewhere = policy != PortPolicy::Any;
        let (routes, listeners, datagram_ports) = Default::default();
        Arc::new(Self { policy, owned_elsewhere, routes, listeners, datagram_ports })
    }

    pub fn policy(&self) -> &PortPolicy {
        &self.policy
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.policy != PortPolicy::Any
    }

    /// The ports to try, in this order.
    fn candidates(&self, port: Option<u16>) -> io::Result<RangeInclusive<u16>> {
        match (port, &self.policy) {
            (Some(port), policy) if !policy.allows(port) => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("port {port} is not among the ports for data, {policy} (`net serve --data-ports, --one-port`)"),
            )),
            (Some(port), _) => Ok(port..=port),
            (None, PortPolicy::Control(port)) => Ok(*port..=*port),
            (None, PortPolicy::Any) => Ok(0..=0),
            (None, PortPolicy::Range(range)) => Ok(range.clone()),
        }
    }

    /// The listener for an endpoint's connections, which may be one that is open already, and its address.
    pub(super) fn listen(
        &self,
        config: &SocketConfig<'_>,
    ) -> io::Result<(Option<Arc<SharedListener>>, TransportAddress)> {
        let is_owned_elsewhere = self.owned_elsewhere && config.has_ports();
        if is_owned_elsewhere || (matches!(self.policy, PortPolicy::Control(_)) && config.is_tcp()) {
            let port = *self.candidates(config.endpoint.port)?.start();
            return Ok((None, TransportAddress::Ip(config.local_socket_address(port)?)));
        }
        let port = config.endpoint.port.filter(|_| config.has_ports());
        let candidates = if config.has_ports() { self.candidates(port)? } else { 0..=0 };
        let mut listeners = lock(&self.listeners);
        let listener = open_shared(&mut listeners, config, port, candidates, |candidate| {
            let listener = config.listen(candidate)?;
            let address = socket::local_address(&listener, config.local)?;
            SharedListener::start(listener, address, Arc::downgrade(&self.routes), None)
        })?;
        let address = listener.address.clone();
        Ok((Some(listener), address))
    }

    /// The port for an endpoint's datagrams, perhaps already open; `None` if the strand needs no shared one.
    pub(super) fn datagram_port(&self, config: &SocketConfig<'_>) -> io::Result<Option<Arc<DatagramPort>>> {
        let port = config.endpoint.port;
        if !config.has_ports() || (port.is_none() && !self.is_limited()) {
            return Ok(None);
        }
        let candidates = self.candidates(port)?;
        if self.owned_elsewhere {
            let address = TransportAddress::Ip(config.local_socket_address(*candidates.start())?);
            return Ok(Some(DatagramPort::owned_elsewhere(address)));
        }
        let mut ports = lock(&self.datagram_ports);
        let shared = open_shared(&mut ports, config, port, candidates, |candidate| {
            DatagramPort::start(config, candidate, Arc::downgrade(&self.routes))
        })?;
        Ok(Some(shared))
    }

    /// Registers a link, whose connections are put into the queue of the result.
    pub(super) fn register(&self, verifier: CookieVerifier, endpoint: &Arc<Endpoint>) -> io::Result<Registration> {
        let queue = Arc::new(SocketQueue::new()?);
        let key = self.insert(verifier, endpoint, Destination::Strand(queue.clone()));
        Ok(Registration { key, queue, routes: self.routes.clone() })
    }

    /// Opens the port for an endpoint of a child process's strand, and registers its link: connections are handed over.
    pub(crate) fn register_for_child(
        &self,
        config: &SocketConfig<'_>,
        verifier: CookieVerifier,
        child: &HandoverSender,
    ) -> io::Result<ChildRegistration> {
        let (mut listener, mut datagrams) = (None, None);
        let address = if is_paired(config.endpoint.protocol) {
            datagrams = self.datagram_port(config)?;
            datagrams.as_ref().map(|port| port.address.clone())
        } else {
            let (shared, address) = self.listen(config)?;
            listener = shared;
            Some(address)
        };
        let port = address.ok_or(io::ErrorKind::AddrNotAvailable)?.port();
        let key = self.insert(verifier, config.endpoint, Destination::Process(child.clone()));
        Ok(ChildRegistration { key, port, routes: self.routes.clone(), _listener: listener, _datagrams: datagrams })
    }

    fn insert(&self, verifier: CookieVerifier, endpoint: &Arc<Endpoint>, destination: Destination) -> (u64, LinkKey) {
        let key = (verifier.session().id(), verifier.link());
        lock(&self.routes.0).insert(key, Route { verifier, destination, endpoint: endpoint.clone() });
        key
    }

    /// Takes a connection that the parent process has verified.
    pub(crate) fn take_over(&self, handed: HandedOver, descriptor: OwnedFd) {
        let connection = AcceptedConnection { socket: Socket::from(descriptor), ordinal: handed.ordinal };
        // Closed if its link has ended.
        let key = (handed.session, handed.link);
        let destination = lock(&self.routes.0).get(&key).map(|route| route.destination.clone());
        if let Some(destination) = destination {
            destination.deliver(key, connection);
        }
    }

    /// Starts to accept connections from a socket on which the control connections of sessions arrive, too; those are
    /// sent to the receiver of the result as they are. The thread that accepts ends when the first value is dropped.
    pub fn share_with_control(&self, listener: Socket) -> io::Result<(Arc<SharedListener>, Receiver<Socket>)> {
        let address = listener.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let (sender, receiver) = channel(MAX_WAITING_CONTROL);
        let routes = Arc::downgrade(&self.routes);
        let listener = SharedListener::start(listener, TransportAddress::Ip(address), routes, Some(sender))?;
        Ok((listener, receiver))
    }
}

/// The open entry for an endpoint, or a new one on the first candidate that can be bound.
fn open_shared<T>(
    open: &mut HashMap<(Protocol, HostAddress, u16), Weak<T>>,
    config: &SocketConfig<'_>,
    port: Option<u16>,
    candidates: RangeInclusive<u16>,
    bind: impl Fn(u16) -> io::Result<Arc<T>>,
) -> io::Result<Arc<T>> {
    let protocol = config.endpoint.protocol;
    let key = (protocol, config.local, port.unwrap_or(0));
    open.retain(|_, entry| entry.strong_count() > 0);
    if let Some(entry) = open.get(&key).and_then(Weak::upgrade) {
        return Ok(entry);
    }
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for candidate in candidates.clone() {
        match bind(candidate) {
            Ok(entry) => {
                open.insert(key, Arc::downgrade(&entry));
                return Ok(entry);
            }
            Err(error) => last = error,
        }
    }
    let ports = match (port, candidates.end()) {
        (Some(port), _) => format!("port {port}"),
        (None, 0) => return Err(last),
        (None, _) => format!("a port of {}-{}", candidates.start(), candidates.end()),
    };
    Err(io::Error::new(last.kind(), format!("cannot listen on {ports} ({}): {last}", protocol.name())))
}

/// The links of all sessions, by session and link.
#[derive(Debug, Default)]
pub(super) struct Routes(Mutex<HashMap<(u64, LinkKey), Route>>);

#[derive(Debug)]
struct Route {
    verifier: CookieVerifier,
    destination: Destination,
    endpoint: Arc<Endpoint>,
}

#[derive(Debug, Clone)]
pub(super) enum Destination {
    Strand(Arc<SocketQueue>),
    Process(HandoverSender),
}

impl Destination {
    pub(super) fn deliver(&self, (session, link): (u64, LinkKey), connection: AcceptedConnection) {
        match self {
            Self::Strand(queue) => queue.push(connection),
            Self::Process(child) => {
                // Ignored: a process that has ended has failed, which is reported as that.
                let handed = HandedOver { session, link, ordinal: connection.ordinal };
                let _: io::Result<()> = child.hand_over(handed, &connection);
            }
        }
    }
}

/// What was done with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatch {
    /// A strand has it, or a probe was answered.
    Delivered,
    Rejected,
}

impl Routes {
    /// Gives a connection to the strand that its cookie names, if it is valid.
    pub(super) fn dispatch(&self, socket: Socket, bytes: &[u8; cookie::LENGTH]) -> Dispatch {
        let Some(link) = self.verify(bytes) else { return Dispatch::Rejected };
        match link.cookie.purpose {
            ConnectionPurpose::Connection => {
                // A shared listener has the options of one endpoint. Ignored: those that the kernel refuses for a
                // connection were accepted for the listener, and are reported from there.
                let _: io::Result<()> = socket::apply_options(&socket, &link.endpoint);
                link.deliver(socket);
            }
            ConnectionPurpose::Probe | ConnectionPurpose::Acknowledgement => {
                answer_probe(&socket, &link.acknowledgement)
            }
        }
        Dispatch::Delivered
    }

    /// The link of a cookie, if that is valid. Nothing is done with the link under the lock, which connections of all
    /// sessions need: handing over blocks while the other process does not read.
    pub(super) fn verify(&self, bytes: &[u8; cookie::LENGTH]) -> Option<VerifiedLink> {
        let mut routes = lock(&self.0);
        let Route { verifier, destination, endpoint } =
            routes.get_mut(&(cookie::session_id(bytes)?, cookie::claimed_link(bytes)))?;
        let cookie = verifier.verify(bytes)?;
        Some(VerifiedLink {
            cookie,
            session: verifier.session().id(),
            acknowledgement: verifier.acknowledgement(cookie),
            destination: destination.clone(),
            endpoint: endpoint.clone(),
        })
    }
}

#[derive(Debug)]
pub(super) struct VerifiedLink {
    pub(super) cookie: Cookie,
    session: u64,
    acknowledgement: [u8; cookie::LENGTH],
    destination: Destination,
    pub(super) endpoint: Arc<Endpoint>,
}

impl VerifiedLink {
    pub(super) fn deliver(&self, socket: Socket) {
        let connection = AcceptedConnection { socket, ordinal: self.cookie.ordinal };
        self.destination.deliver((self.session, self.cookie.link), connection);
    }
}

/// A registered link. Dropping it ends the registration.
#[derive(Debug)]
pub(super) struct Registration {
    key: (u64, LinkKey),
    queue: Arc<SocketQueue>,
    routes: Arc<Routes>,
}

impl Registration {
    pub(super) fn queue(&self) -> &SocketQueue {
        &self.queue
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock(&self.routes.0).remove(&self.key);
    }
}

/// A registered link of a child process, with what keeps its port open. Dropping it ends the registration.
#[derive(Debug)]
pub(crate) struct ChildRegistration {
    key: (u64, LinkKey),
    pub(crate) port: u16,
    routes: Arc<Routes>,
    _listener: Option<Arc<SharedListener>>,
    _datagrams: Option<Arc<DatagramPort>>,
}

impl Drop for ChildRegistration {
    fn drop(&mut self) {
        lock(&self.routes.0).remove(&self.key);
    }
}

#[derive(Debug)]
pub(super) struct SocketQueue {
    readable: OwnedFd,
    connections: Mutex<VecDeque<AcceptedConnection>>,
}

impl SocketQueue {
    fn new() -> io::Result<Self> {
        let readable = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE)?;
        Ok(Self { readable, connections: Mutex::default() })
    }

    pub(super) fn push(&self, connection: AcceptedConnection) {
        lock(&self.connections).push_back(connection);
        // Cannot fail: memory is exhausted before the counter overflows.
        let _: Result<usize, _> = rustix::io::write(&self.readable, &1_u64.to_ne_bytes());
    }

    /// Takes the next connection; `WouldBlock` if there is none.
    pub(super) fn pop(&self) -> io::Result<AcceptedConnection> {
        let mut count = [0; 8];
        rustix::io::read(&self.readable, &mut count)?;
        lock(&self.connections).pop_front().ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

impl AsFd for SocketQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::super::cookie::SessionKey;
    use super::*;

    fn cookie(session: &SessionKey, link: LinkKey) -> [u8; cookie::LENGTH] {
        session.seal(&Cookie { purpose: ConnectionPurpose::Connection, link, attempt: 1, ordinal: 1 })
    }

    #[test]
    fn a_process_that_takes_no_connection_delays_no_other_link() {
        let (session, endpoint) = (SessionKey::generate().unwrap(), Arc::new(Endpoint::new("h", Protocol::Tcp)));
        let link = |strand| LinkKey { group: 0, flowop: 0, strand };
        let (near, far) = UnixStream::pair().unwrap();
        let child = HandoverSender::new(near);
        let routes = Arc::new(Routes::default());
        for strand in 0..2 {
            let destination = Destination::Process(child.clone());
            let verifier = CookieVerifier::new(session, link(strand));
            let route = Route { verifier, destination, endpoint: endpoint.clone() };
            lock(&routes.0).insert((session.id(), link(strand)), route);
        }
        // More than the socket takes: it is full until the other end is closed.
        let full = thread::spawn(move || child.send(&"x".repeat(16 << 20)));
        while rustix::io::ioctl_fionread(&far).unwrap() == 0 {
            thread::yield_now();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = Socket::from(listener.accept().unwrap().0);
        let (done, dispatched) = mpsc::channel();
        let blocked = thread::spawn({
            let (routes, bytes) = (routes.clone(), cookie(&session, link(0)));
            move || done.send(routes.dispatch(socket, &bytes))
        });
        assert!(dispatched.recv_timeout(Duration::from_millis(200)).is_err(), "it waits for the process");
        let (answer, other) = mpsc::channel();
        thread::spawn(move || answer.send(routes.verify(&cookie(&session, link(1))).is_some()));
        assert_eq!(other.recv_timeout(Duration::from_secs(60)), Ok(true));
        drop((far, client));
        assert!(full.join().unwrap().is_err());
        blocked.join().unwrap().unwrap();
    }
}
