//! Creation of sockets according to the endpoints of a profile.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use super::address::{HostAddress, TransportAddress};
use super::{sockopt, vsock};
use wb_net_profile::{Endpoint, Protocol};

/// Default time limit for establishing a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub const UNIX_NAME_PREFIX: &str = "weighbridge-";

/// Backlog of a listening socket; the kernel reduces it to its own limit.
const BACKLOG: i32 = 4096;

#[derive(Debug, Clone)]
pub struct SocketConfig<'a> {
    pub endpoint: &'a Arc<Endpoint>,
    /// The address of this machine: listening sockets are bound to it.
    pub local: HostAddress,
    pub blocking: bool,
    pub receive_timeout: Option<Duration>,
}

impl SocketConfig<'_> {
    fn domain(&self) -> Domain {
        match (self.endpoint.protocol, self.local) {
            (Protocol::Unix | Protocol::UnixDgram, _) => Domain::UNIX,
            (Protocol::Vsock, _) | (_, HostAddress::Vsock(_)) => Domain::VSOCK,
            (_, HostAddress::Ip { address, .. }) if address.is_ipv6() => Domain::IPV6,
            _ => Domain::IPV4,
        }
    }

    /// Creates an unbound socket, with the options that must be set before binding.
    pub fn socket(&self) -> io::Result<Socket> {
        let (kind, protocol) = match self.endpoint.protocol {
            Protocol::Tcp | Protocol::Tls => (Type::STREAM, Some(socket2::Protocol::TCP)),
            Protocol::Udp | Protocol::Quic => (Type::DGRAM, Some(socket2::Protocol::UDP)),
            Protocol::Sctp => (Type::STREAM, Some(socket2::Protocol::from(libc::IPPROTO_SCTP))),
            Protocol::Unix | Protocol::Vsock => (Type::STREAM, None),
            Protocol::UnixDgram => (Type::DGRAM, None),
            Protocol::Rds => return Err(io::Error::new(io::ErrorKind::Unsupported, "RDS is not implemented")),
        };
        let kind = if self.blocking { kind } else { kind.nonblocking() };
        let socket = Socket::new(self.domain(), kind, protocol)?;
        let endpoint = self.endpoint;
        set_buffer_sizes(&socket, endpoint)?;
        if self.blocking {
            socket.set_write_timeout(Some(endpoint.timeout.unwrap_or(CONNECT_TIMEOUT)))?;
            if self.receive_timeout.is_some() {
                socket.set_read_timeout(self.receive_timeout)?;
            }
        }
        set_tcp_options(&socket, endpoint)?;
        set_ip_options(&socket, endpoint)?;
        if endpoint.protocol == Protocol::Sctp {
            super::sctp::configure(&socket, &endpoint.sctp, endpoint.no_delay)?;
        }
        Ok(socket)
    }

    /// Creates a socket for opening a connection. It is bound to the local address only on request: the kernel selects
    /// address and port when it connects, unless the endpoint has a port for each `strand`.
    pub fn connecting_socket(&self, bind: bool, strand: Option<u32>) -> io::Result<Socket> {
        let socket = self.socket()?;
        if let (Some(first), Some(strand)) = (self.endpoint.local_port, strand)
            && self.has_ports()
        {
            let port = u32::from(first) + strand;
            let port = u16::try_from(port)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, format!("no local port {port}")))?;
            // As for listeners: connections of an earlier run in TIME_WAIT must not prevent binding.
            socket.set_reuse_address(true)?;
            socket.bind(&self.local_socket_address(port)?.into())?;
            return Ok(socket);
        }
        if let (true, Some(address)) = (bind, self.local.with_port(0)) {
            // The port is chosen by connect(2), so that one port serves for several peers.
            sockopt::set(socket.as_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &1_i32)?;
            socket.bind(&address.into())?;
        }
        Ok(socket)
    }

    /// Whether the protocol has ports of IP.
    pub(crate) fn has_ports(&self) -> bool {
        !matches!(self.endpoint.protocol, Protocol::Unix | Protocol::UnixDgram | Protocol::Vsock)
    }

    /// Whether the protocol is TCP, or above it.
    pub(super) fn is_tcp(&self) -> bool {
        matches!(self.endpoint.protocol, Protocol::Tcp | Protocol::Tls)
    }

    pub(super) fn local_socket_address(&self, port: u16) -> io::Result<SocketAddr> {
        self.local.with_port(port).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Creates a socket bound to a port, or to a free one for port 0.
    pub fn bind(&self, port: u16, shared: bool) -> io::Result<Socket> {
        let socket = self.socket()?;
        if shared && matches!(self.domain(), Domain::IPV4 | Domain::IPV6) {
            // Safe from other users: all sockets that share a port must belong to the same user.
            socket.set_reuse_port(true)?;
        }
        socket.bind(&self.bind_address(port)?)?;
        Ok(socket)
    }

    pub fn listen(&self, port: u16) -> io::Result<Socket> {
        let socket = self.socket()?;
        if self.domain() != Domain::UNIX && port > 0 {
            // Connections of an earlier run in TIME_WAIT must not prevent binding. For port 0 this is not set: the
            // kernel would then search half of all ports each time that it looks for a free one.
            socket.set_reuse_address(true)?;
        }
        socket.bind(&self.bind_address(port)?)?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    }

    fn bind_address(&self, port: u16) -> io::Result<SockAddr> {
        Ok(match (self.endpoint.protocol, self.local) {
            (Protocol::Unix | Protocol::UnixDgram, _) => abstract_address(&random_unix_name()?)?,
            (Protocol::Vsock, _) | (_, HostAddress::Vsock(_)) => {
                SockAddr::vsock(libc::VMADDR_CID_ANY, if port == 0 { libc::VMADDR_PORT_ANY } else { u32::from(port) })
            }
            (_, HostAddress::Ip { .. }) => self.local_socket_address(port)?.into(),
        })
    }
}

/// An address in the abstract namespace, which vanishes with its socket.
fn abstract_address(name: &str) -> io::Result<SockAddr> {
    SockAddr::unix(format!("\0{name}"))
}

fn random_unix_name() -> io::Result<String> {
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{UNIX_NAME_PREFIX}{:032x}", u128::from_ne_bytes(random)))
}

/// The address of a socket, in the form that is announced to the other side.
pub fn local_address(socket: &Socket, host: HostAddress) -> io::Result<TransportAddress> {
    let name = socket.local_addr()?;
    if let Some(address) = name.as_socket() {
        return Ok(TransportAddress::Ip(address));
    }
    if let Some((_, port)) = name.as_vsock_address() {
        let cid = if let HostAddress::Vsock(cid) = host { cid } else { vsock::local_cid_or_loopback() };
        return Ok(TransportAddress::Vsock { cid, port });
    }
    let name = name.as_abstract_namespace().unwrap_or_default();
    Ok(TransportAddress::Unix(String::from_utf8_lossy(name).into_owned()))
}

pub fn sock_addr(address: &TransportAddress) -> io::Result<SockAddr> {
    Ok(match address {
        TransportAddress::Ip(address) => (*address).into(),
        TransportAddress::Unix(name) => abstract_address(name)?,
        TransportAddress::Vsock { cid, port } => SockAddr::vsock(*cid, *port),
    })
}

/// Sets the options of an endpoint for an accepted connection, which has those of the listener.
pub(super) fn apply_options(socket: &Socket, endpoint: &Endpoint) -> io::Result<()> {
    set_buffer_sizes(socket, endpoint)?;
    set_tcp_options(socket, endpoint)?;
    set_ip_options(socket, endpoint)
}

fn set_ip_options(socket: &Socket, endpoint: &Endpoint) -> io::Result<()> {
    let domain = socket.domain()?;
    if let Some(tos) = endpoint.tos {
        match domain {
            Domain::IPV4 => socket.set_tos_v4(tos.into())?,
            Domain::IPV6 => socket.set_tclass_v6(tos.into())?,
            _ => {}
        }
    }
    if let Some(rate) = endpoint.pacing {
        sockopt::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &rate)?;
    }
    if endpoint.dont_fragment {
        let always = libc::IP_PMTUDISC_DO;
        match domain {
            Domain::IPV4 => sockopt::set(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &always)?,
            Domain::IPV6 => sockopt::set(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, &always)?,
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn set_buffer_sizes(socket: &Socket, endpoint: &Endpoint) -> io::Result<()> {
    let Some(window) = endpoint.window else { return Ok(()) };
    if endpoint.protocol == Protocol::Vsock {
        return vsock::set_buffer_size(socket, window);
    }
    socket.set_send_buffer_size(window as usize)?;
    socket.set_recv_buffer_size(window as usize)
}

fn set_tcp_options(socket: &Socket, endpoint: &Endpoint) -> io::Result<()> {
    if !matches!(endpoint.protocol, Protocol::Tcp | Protocol::Tls) {
        return Ok(());
    }
    if endpoint.no_delay {
        socket.set_tcp_nodelay(true)?;
    }
    if endpoint.user_timeout.is_some() {
        socket.set_tcp_user_timeout(endpoint.user_timeout)?;
    }
    if let Some(mss) = endpoint.mss {
        socket.set_tcp_mss(mss)?;
    }
    match &endpoint.congestion {
        Some(congestion) => socket.set_tcp_congestion(congestion.as_bytes()),
        None => Ok(()),
    }
}
