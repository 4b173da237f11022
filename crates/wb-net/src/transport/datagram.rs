//! Datagrams between two sockets that are connected to each other: UDP and UNIX.

use std::{
    array,
    io::{self, IoSlice},
    os::fd::{AsFd, BorrowedFd},
};

use rustix::net::{MMsgHdr, RecvFlags, SendAncillaryBuffer, SendFlags, sendmmsg};
use socket2::Socket;

use super::Transport;
use crate::language::Message;

/// So many datagrams go with one system call at most.
const MAX_BATCH: usize = 64;

/// A connected datagram socket. Whatever comes from elsewhere the kernel drops.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: Socket,
}

impl DatagramSocket {
    /// Of a socket that is connected.
    pub fn new(socket: Socket) -> Self {
        Self { socket }
    }
}

impl Transport for DatagramSocket {
    #[inline]
    fn send(&mut self, bytes: &[u8], how: &Message) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | if how.non_blocking { SendFlags::DONTWAIT } else { SendFlags::empty() };
        Ok(rustix::net::send(&self.socket, bytes, flags)?)
    }

    fn send_many(&mut self, bytes: &[u8], size: usize, how: &Message) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | if how.non_blocking { SendFlags::DONTWAIT } else { SendFlags::empty() };
        // On the stack, so that nothing is allocated while it is measured; what does not fit goes with the next call.
        let mut nothing: [SendAncillaryBuffer<'_, '_, '_>; MAX_BATCH] =
            array::from_fn(|_| SendAncillaryBuffer::default());
        let slices: [[IoSlice<'_>; 1]; MAX_BATCH] =
            array::from_fn(|n| [IoSlice::new(bytes.get(n * size..(n + 1) * size).unwrap_or_default())]);
        let mut number = 0..;
        let mut headers = nothing.each_mut().map(|control| {
            let n = number.next().unwrap_or(0);
            MMsgHdr::new(&slices[n], control)
        });
        let count = (bytes.len() / size).min(MAX_BATCH);
        Ok(sendmmsg(&self.socket, &mut headers[..count], flags)?)
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
}
