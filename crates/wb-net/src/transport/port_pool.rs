//! Ports from which connections are opened; the other side has been told of them.

use std::io;

use socket2::{SockAddr, Socket};

use super::{
    address::TransportAddress,
    socket::{self, SocketConfig},
};

/// So many ports are held for a link whose connection is made over and over, if no more than 16 strands do.
const MAX_PORTS_PER_LINK: usize = 256;

/// So many ports are held by all strands of a group, and at least 16 by each.
const PORTS_PER_GROUP: usize = 4096;

/// Sockets that are bound, and after them others at the same places.
#[derive(Debug)]
pub(super) struct PortPool {
    addresses: Vec<TransportAddress>,
    /// The last ones are used first.
    sockets: Vec<Socket>,
    used: usize,
    repeated: bool,
}

impl PortPool {
    pub(super) fn bind(manner: &SocketConfig<'_>, repeated: bool, strands: usize) -> io::Result<Self> {
        let count = if repeated { (PORTS_PER_GROUP / strands.max(1)).clamp(16, MAX_PORTS_PER_LINK) } else { 1 };
        let held: Vec<Socket> = (0..count).map(|_| manner.bind(0, repeated)).collect::<io::Result<_>>()?;
        let addresses = held.iter().map(|held| socket::local_address(held, manner.local)).collect::<io::Result<_>>()?;
        Ok(Self { addresses, sockets: held, used: 0, repeated })
    }

    pub(super) fn addresses(&self) -> &[TransportAddress] {
        &self.addresses
    }

    /// How many places there are.
    pub(super) fn port_count(&self) -> usize {
        if self.repeated { self.addresses.len() } else { 1 }
    }

    /// A socket at the place that has not been used for the longest time.
    pub(super) fn next_socket(&mut self, manner: &SocketConfig<'_>) -> io::Result<Socket> {
        if !self.repeated {
            return self.sockets.pop().ok_or_else(|| io::Error::other("the port of this connection is used already"));
        }
        if matches!(self.addresses[0], TransportAddress::Ip(_)) {
            // What is held stays: sockets share a port, and nobody else gets it.
            let socket = manner.socket()?;
            socket.set_reuse_port(true)?;
            socket.bind(&self.next_address()?)?;
            return Ok(socket);
        }
        if let Some(held) = self.sockets.pop() {
            self.used += 1;
            return Ok(held);
        }
        for _ in 0..self.addresses.len() {
            let socket = manner.socket()?;
            match socket.bind(&self.next_address()?) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                bound => return bound.map(|()| socket),
            }
        }
        let what = "every place from which this connection may be opened is still in use";
        Err(io::Error::new(io::ErrorKind::AddrInUse, what))
    }

    /// In the order in which the held ones are used.
    fn next_address(&mut self) -> io::Result<SockAddr> {
        let count = self.addresses.len();
        let place = count - 1 - self.used % count;
        self.used += 1;
        socket::sock_addr(&self.addresses[place])
    }
}
