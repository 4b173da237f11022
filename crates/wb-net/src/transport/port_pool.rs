//! Ports that connections are opened from, which have been announced to the other side.

use std::io;

use socket2::{SockAddr, Socket};

use super::address::TransportAddress;
use super::socket::{self, SocketConfig};

/// Ports per link whose connection is opened repeatedly, if at most 16 strands do so.
const MAX_PORTS_PER_LINK: usize = 256;

/// Ports of all strands of a group together, with at least 16 per strand.
const PORTS_PER_GROUP: usize = 4096;

/// Bound sockets, and the addresses to bind further ones to.
#[derive(Debug)]
pub(super) struct PortPool {
    addresses: Vec<TransportAddress>,
    /// Sockets that are not used yet, taken from the end.
    sockets: Vec<Socket>,
    used: usize,
    repeated: bool,
}

impl PortPool {
    pub(super) fn bind(config: &SocketConfig<'_>, repeated: bool, strands: usize) -> io::Result<Self> {
        let count = if repeated { (PORTS_PER_GROUP / strands.max(1)).clamp(16, MAX_PORTS_PER_LINK) } else { 1 };
        let sockets: Vec<Socket> = (0..count).map(|_| config.bind(0, repeated)).collect::<io::Result<_>>()?;
        let addresses =
            sockets.iter().map(|bound| socket::local_address(bound, config.local)).collect::<io::Result<_>>()?;
        Ok(Self { addresses, sockets, used: 0, repeated })
    }

    pub(super) fn addresses(&self) -> &[TransportAddress] {
        &self.addresses
    }

    /// Number of ports.
    pub(super) fn port_count(&self) -> usize {
        if self.repeated { self.addresses.len() } else { 1 }
    }

    /// A socket at the least recently used port.
    pub(super) fn next_socket(&mut self, config: &SocketConfig<'_>) -> io::Result<Socket> {
        if !self.repeated {
            return self.sockets.pop().ok_or_else(|| io::Error::other("the port of this connection is used already"));
        }
        if matches!(self.addresses[0], TransportAddress::Ip(_)) {
            // The bound sockets stay open: with SO_REUSEPORT others share their ports, and no other program gets them.
            let socket = config.socket()?;
            socket.set_reuse_port(true)?;
            socket.bind(&self.next_address()?)?;
            return Ok(socket);
        }
        if let Some(socket) = self.sockets.pop() {
            self.used += 1;
            return Ok(socket);
        }
        for _ in 0..self.addresses.len() {
            let socket = config.socket()?;
            match socket.bind(&self.next_address()?) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                bound => return bound.map(|()| socket),
            }
        }
        let message = "all ports for opening this connection are still in use";
        Err(io::Error::new(io::ErrorKind::AddrInUse, message))
    }

    /// The next address, in the order in which the bound sockets are used.
    fn next_address(&mut self) -> io::Result<SockAddr> {
        let count = self.addresses.len();
        let index = count - 1 - self.used % count;
        self.used += 1;
        socket::sock_addr(&self.addresses[index])
    }
}
