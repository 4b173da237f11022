//! How the two ends of a connection come to know each other before anything is measured.
//!
//! Every connect and accept of a profile is a link. Before the run both sides make their sockets, or hold ports for
//! them, and tell each other the addresses over the control connection. So the side that accepts takes connections
//! from just those addresses, and the measured traffic carries no mark and needs no round trip to be recognised.

use std::{collections::HashSet, io, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use socket2::Socket;

use super::{
    Interest, Known, Transport, Wait,
    address::{Address, Place},
    certificate::{self, Fingerprint},
    datagram::Datagrams,
    door::{Door, Doors},
    pool::Pool,
    quic,
    socket::{self, Manner},
    stream::Stream,
    tls::{self, Tls},
    vsock,
};
use crate::language::{Endpoint, Protocol};

/// What one side tells the other of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Where its sockets are: one, or for connections that are made over and over several.
    pub addresses: Vec<Address>,
    /// The fingerprint of the certificate that the accepting side will show, of protocols that have one.
    pub certificate: Option<String>,
}

/// Which part of a link is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The one that connects.
    Opener,
    /// The one that accepts.
    Taker,
}

/// What an end is made from.
#[derive(Debug)]
pub struct Terms<'a> {
    /// What the profile says.
    pub endpoint: &'a Endpoint,
    /// Which part is played.
    pub part: Part,
    /// Where this machine is.
    pub here: Place,
    /// Whether the connection is made more than once.
    pub repeated: bool,
    /// How many strands of this group make it.
    pub strands: usize,
    /// Whether system calls wait.
    pub blocking: bool,
    /// After which time a blocking receive gives up.
    pub receive_timeout: Option<Duration>,
    /// The doors that strands of this process share.
    pub doors: &'a Arc<Doors>,
}

/// This side's end of a link.
#[derive(Debug)]
pub struct End {
    endpoint: Endpoint,
    part: Part,
    here: Place,
    blocking: bool,
    receive_timeout: Option<Duration>,
    kind: Kind,
    /// How TLS is spoken; of the opener once it knows the other side's certificate.
    tls: Option<tls::Role>,
}

#[derive(Debug)]
enum Kind {
    /// Ports from which connections are opened.
    Pool { pool: Pool, peer: Option<Address> },
    /// Where connections are taken.
    Door(Door),
    /// A socket that is connected to one other.
    Pair { socket: Socket, address: Address, peer: Option<Address>, quic: Option<Arc<quic::Link>> },
}

impl End {
    /// Makes sockets, or holds ports for them.
    pub fn prepare(terms: &Terms<'_>) -> io::Result<Self> {
        let manner = Manner {
            endpoint: terms.endpoint,
            here: terms.here,
            blocking: terms.blocking,
            receive_timeout: terms.receive_timeout,
        };
        let port = terms.endpoint.port.unwrap_or(0);
        let kind = match (is_paired(terms.endpoint.protocol), terms.part) {
            (true, part) => {
                let (port, shared) = match part {
                    Part::Opener => (0, false),
                    Part::Taker if port > 0 => (port, true),
                    Part::Taker => terms.doors.datagram_port(),
                };
                let socket = manner.bound(port, shared)?;
                if terms.endpoint.protocol == Protocol::Quic && terms.endpoint.window.is_none() {
                    quic::make_room(&socket)?;
                }
                let address = socket::address(&socket, terms.here)?;
                Kind::Pair { socket, address, peer: None, quic: None }
            }
            (false, Part::Opener) => {
                Kind::Pool { pool: Pool::prepare(&manner, terms.repeated, terms.strands)?, peer: None }
            }
            (false, Part::Taker) => Kind::Door(Door::prepare(&manner, terms.repeated, terms.doors)?),
        };
        let (endpoint, here) = (terms.endpoint.clone(), terms.here);
        let mut tls = None;
        if endpoint.protocol == Protocol::Tls {
            if endpoint.kernel_tls {
                tls::require_kernel(&manner.socket()?)?;
            }
            if terms.part == Part::Taker {
                tls = Some(tls::Role::taker(endpoint.kernel_tls)?);
            }
        }
        if endpoint.protocol == Protocol::Quic {
            // What it announces.
            certificate::identity()?;
        }
        Ok(Self {
            endpoint,
            part: terms.part,
            here,
            blocking: terms.blocking,
            receive_timeout: terms.receive_timeout,
            kind,
            tls,
        })
    }

    /// What the other side has to know.
    pub fn announcement(&self) -> Announcement {
        let addresses = match &self.kind {
            Kind::Pool { pool, .. } => pool.addresses().to_vec(),
            Kind::Door(door) => vec![door.address().clone()],
            Kind::Pair { address, .. } => vec![address.clone()],
        };
        let certificate = match (self.endpoint.protocol, self.part) {
            (Protocol::Tls | Protocol::Quic, Part::Taker) => certificate::identity().ok(),
            _ => None,
        };
        Announcement { addresses, certificate: certificate.map(|identity| identity.fingerprint.text().to_owned()) }
    }

    /// Takes note of the other side's addresses. `there` is where the control connection comes from: connections
    /// are opened to nowhere else.
    pub fn meet(&mut self, mut announced: Announcement, there: Place) -> io::Result<()> {
        if is_this_machine(self.here, there) {
            announced.addresses.iter_mut().for_each(vsock::through_loopback);
        }
        let Some(first) = announced.addresses.first().cloned() else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the other side announced no address"));
        };
        let here = self.here;
        let elsewhere = |address: &Address| match (address, there) {
            (Address::Ip(address), Place::Ip(there)) => address.ip() != there,
            (Address::Vsock { cid, .. }, Place::Vsock(there)) => *cid != there,
            // Sockets of others on this machine are none of a run's.
            (Address::Unix { name, .. }, there) => !name.starts_with(socket::NAMES) || !is_this_machine(here, there),
            _ => false,
        };
        if self.endpoint.protocol == Protocol::Tls && self.part == Part::Opener {
            let fingerprint = Fingerprint::announced(announced.certificate.clone())?;
            self.tls = Some(tls::Role::opener(fingerprint, self.endpoint.kernel_tls)?);
        }
        match &mut self.kind {
            Kind::Pool { peer, .. } | Kind::Pair { peer, .. } if elsewhere(&first) => {
                *peer = None;
                let what = match first {
                    Address::Unix { .. } => format!("UNIX sockets reach this machine alone, and {there} is another"),
                    _ => format!("the other side, at {there}, announced an address elsewhere"),
                };
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            Kind::Pool { peer, .. } => *peer = Some(first),
            Kind::Door(door) => door.expect(announced.addresses.into_iter().collect::<HashSet<_>>()),
            Kind::Pair { socket, peer, quic, .. } => {
                socket.connect(&socket::sock_addr(&first)?)?;
                socket::discard(socket);
                if let (Protocol::Quic, Address::Ip(peer)) = (self.endpoint.protocol, &first) {
                    let window = self.endpoint.window;
                    let role = match self.part {
                        Part::Opener => quic::Role::opener(Fingerprint::announced(announced.certificate)?, window),
                        Part::Taker => quic::Role::taker(window),
                    };
                    *quic = Some(Arc::new(quic::Link::new(socket, *peer, role?)?));
                }
                *peer = Some(first);
            }
        }
        Ok(())
    }

    /// Begins to open a connection. It is made when [`Transport::establish`] says so.
    pub fn open(&mut self) -> io::Result<Box<dyn Transport>> {
        match &mut self.kind {
            Kind::Pool { pool, peer } => {
                let peer = socket::sock_addr(peer.as_ref().ok_or_else(unknown)?)?;
                let manner = Manner {
                    endpoint: &self.endpoint,
                    here: self.here,
                    blocking: self.blocking,
                    receive_timeout: self.receive_timeout,
                };
                for _ in 1..pool.places() {
                    let socket = pool.socket(&manner)?;
                    match socket.connect(&peer) {
                        // What was made there before has not ended yet: it is the other side's turn, or time's.
                        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
                        connected => return self.opened(socket, connected),
                    }
                }
                let socket = pool.socket(&manner)?;
                let connected = socket.connect(&peer);
                self.opened(socket, connected)
            }
            Kind::Pair { .. } => self.paired(),
            Kind::Door(_) => Err(io::Error::other("this end takes connections and opens none")),
        }
    }

    /// Takes the next connection, of datagram sockets the one there is.
    pub fn take(&mut self) -> io::Result<Box<dyn Transport>> {
        match &mut self.kind {
            Kind::Door(door) => {
                let socket = door.take(self.blocking)?;
                self.transport(socket, true)
            }
            Kind::Pair { .. } => self.paired(),
            Kind::Pool { .. } => Err(io::Error::other("this end opens connections and takes none")),
        }
    }

    /// What to wait for after [`End::take`] said `WouldBlock`.
    pub fn waits(&self) -> Wait {
        match &self.kind {
            Kind::Door(door) => door.waits(),
            Kind::Pool { .. } | Kind::Pair { .. } => Wait { fd: None, interest: Interest::Readable, until: None },
        }
    }

    /// Connections from elsewhere that were dropped.
    pub fn refused(&self) -> u64 {
        match &self.kind {
            Kind::Door(door) => door.refused(),
            Kind::Pool { .. } | Kind::Pair { .. } => 0,
        }
    }

    fn paired(&self) -> io::Result<Box<dyn Transport>> {
        let Kind::Pair { socket, peer: Some(peer), quic, .. } = &self.kind else {
            return Err(unknown());
        };
        let socket = socket.try_clone()?;
        if let Some(link) = quic {
            return Ok(Box::new(quic::Quic::new(socket, link.clone())?));
        }
        socket.connect(&socket::sock_addr(peer)?)?;
        Ok(Box::new(Datagrams::new(socket)))
    }

    /// A connection that is made, or about to be.
    fn opened(&self, socket: Socket, connected: io::Result<()>) -> io::Result<Box<dyn Transport>> {
        match connected {
            Ok(()) => self.transport(socket, true),
            Err(error) if is_under_way(&error) => self.transport(socket, false),
            Err(error) => Err(error),
        }
    }

    fn transport(&self, socket: Socket, established: bool) -> io::Result<Box<dyn Transport>> {
        Ok(match (self.endpoint.protocol, &self.tls) {
            (Protocol::Tls, Some(role)) => Box::new(Tls::new(socket, role, self.endpoint.kernel_tls)?),
            (Protocol::Tls, None) => return Err(unknown()),
            (Protocol::Sctp, _) => Box::new(super::sctp::Association::new(socket)),
            (Protocol::Tcp, _) => Box::new(Stream::new(socket, Known::Tcp, established)),
            (Protocol::Vsock, _) => Box::new(Stream::new(socket, Known::Vsock, established)),
            _ => Box::new(Stream::new(socket, Known::Buffers, established)),
        })
    }
}

/// Whether both ends of a control connection are on one machine.
fn is_this_machine(here: Place, there: Place) -> bool {
    match (here, there) {
        (Place::Ip(here), Place::Ip(there)) => here == there || there.is_loopback(),
        (here, there) => here == there,
    }
}

/// Whether each end has a socket of its own from the beginning, which is connected to the other.
fn is_paired(protocol: Protocol) -> bool {
    protocol.is_datagram() || protocol == Protocol::Quic
}

fn unknown() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the other side's address is not known")
}

fn is_under_way(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EALREADY))
}
