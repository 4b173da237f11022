//! SCTP, one-to-one style (RFC 4960; its sockets: RFC 6458).

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use super::{Info, Transport};
use crate::language::{Message, SctpEndpoint};

/// An association.
#[derive(Debug)]
pub struct Association {
    socket: Socket,
}

impl Association {
    /// Of a socket that is connected, or about to be.
    pub fn new(socket: Socket) -> Self {
        Self { socket }
    }
}

/// Sets what a profile says of associations.
pub(super) fn configure(_socket: &Socket, _said: &SctpEndpoint, _no_delay: bool) -> io::Result<()> {
    Ok(())
}

impl Transport for Association {
    fn send(&mut self, bytes: &[u8], _: &Message) -> io::Result<usize> {
        Ok(rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL)?)
    }

    fn receive(&mut self, into: &mut [u8], _: &Message) -> io::Result<usize> {
        Ok(rustix::net::recv(&self.socket, into, RecvFlags::empty())?.0)
    }

    fn close(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn info(&self) -> Info {
        Info::of(&self.socket, false)
    }
}
