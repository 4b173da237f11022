//! Datagrams between two sockets that are connected to each other: UDP and UNIX.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use super::{Info, Transport};
use crate::language::Message;

/// A connected datagram socket. Whatever comes from elsewhere the kernel drops.
#[derive(Debug)]
pub struct Datagrams {
    socket: Socket,
}

impl Datagrams {
    /// Of a socket that is connected.
    pub fn new(socket: Socket) -> Self {
        Self { socket }
    }
}

impl Transport for Datagrams {
    #[inline]
    fn send(&mut self, bytes: &[u8], how: &Message) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | if how.non_blocking { SendFlags::DONTWAIT } else { SendFlags::empty() };
        Ok(rustix::net::send(&self.socket, bytes, flags)?)
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8], how: &Message) -> io::Result<usize> {
        let flags = if how.non_blocking { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        Ok(rustix::net::recv(&self.socket, into, flags)?.0)
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
