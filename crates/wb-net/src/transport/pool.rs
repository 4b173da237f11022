//! Ports from which connections are opened; the other side has been told of them.

use std::io;

use socket2::{SockAddr, Socket};

use super::{
    address::Address,
    socket::{self, Manner},
};

/// So many ports are held for a link whose connection is made over and over, if no more than 16 strands do.
const REPEATED: usize = 256;

/// So many ports are held by all strands of a group, and at least 16 by each.
const HELD: usize = 4096;

/// Sockets that are bound, and after them others at the same places.
#[derive(Debug)]
pub(super) struct Pool {
    addresses: Vec<Address>,
    /// The last ones are used first.
    held: Vec<Socket>,
    used: usize,
    repeated: bool,
}

impl Pool {
    pub(super) fn prepare(manner: &Manner<'_>, repeated: bool, strands: usize) -> io::Result<Self> {
        let count = if repeated { (HELD / strands.max(1)).clamp(16, REPEATED) } else { 1 };
        let held: Vec<Socket> = (0..count).map(|_| manner.bound(0, repeated)).collect::<io::Result<_>>()?;
        let addresses = held.iter().map(|held| socket::address(held, manner.here)).collect::<io::Result<_>>()?;
        Ok(Self { addresses, held, used: 0, repeated })
    }

    pub(super) fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// How many places there are.
    pub(super) fn places(&self) -> usize {
        if self.repeated { self.addresses.len() } else { 1 }
    }

    /// A socket at the place that has not been used for the longest time.
    pub(super) fn socket(&mut self, manner: &Manner<'_>) -> io::Result<Socket> {
        if !self.repeated {
            return self.held.pop().ok_or_else(|| io::Error::other("the port of this connection is used already"));
        }
        if matches!(self.addresses[0], Address::Ip(_)) {
            // What is held stays: sockets share a port, and nobody else gets it.
            let socket = manner.socket()?;
            socket.set_reuse_port(true)?;
            socket.bind(&self.next_place()?)?;
            return Ok(socket);
        }
        if let Some(held) = self.held.pop() {
            self.used += 1;
            return Ok(held);
        }
        for _ in 0..self.addresses.len() {
            let socket = manner.socket()?;
            match socket.bind(&self.next_place()?) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                bound => return bound.map(|()| socket),
            }
        }
        let what = "every place from which this connection may be opened is still in use";
        Err(io::Error::new(io::ErrorKind::AddrInUse, what))
    }

    /// In the order in which the held ones are used.
    fn next_place(&mut self) -> io::Result<SockAddr> {
        let count = self.addresses.len();
        let place = count - 1 - self.used % count;
        self.used += 1;
        socket::sock_addr(&self.addresses[place])
    }
}
