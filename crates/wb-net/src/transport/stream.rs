//! Byte streams that the kernel carries alone: TCP, UNIX and vsock.

use std::{
    fs::File,
    io::{self, IoSlice, IoSliceMut},
    os::fd::{AsFd, BorrowedFd},
};

use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use super::{Info, Transport};
use crate::language::{Call, Message};

/// A connected stream socket.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    tcp: bool,
}

impl Stream {
    /// Of a socket that is connected, or about to be.
    pub fn new(socket: Socket, tcp: bool) -> Self {
        Self { socket, tcp }
    }
}

impl Transport for Stream {
    #[inline]
    fn send(&mut self, bytes: &[u8], how: &Message) -> io::Result<usize> {
        // Without a signal: the other side may be gone, and that is an error like others.
        let flags = SendFlags::NOSIGNAL | if how.non_blocking { SendFlags::DONTWAIT } else { SendFlags::empty() };
        Ok(match how.call {
            Call::Vectored => rustix::io::writev(&self.socket, &[IoSlice::new(bytes)])?,
            _ => rustix::net::send(&self.socket, bytes, flags)?,
        })
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8], how: &Message) -> io::Result<usize> {
        let flags = if how.non_blocking { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        Ok(match how.call {
            Call::Vectored => rustix::io::readv(&self.socket, &mut [IoSliceMut::new(into)])?,
            _ => rustix::net::recv(&self.socket, into, flags)?.0,
        })
    }

    fn establish(&mut self) -> io::Result<()> {
        connected(&self.socket)
    }

    fn send_file(&mut self, file: &File, offset: u64, length: usize, _: &Message) -> io::Result<usize> {
        send_file(&self.socket, file, offset, length)
    }

    fn close(&mut self, opener: bool) -> io::Result<()> {
        if opener { wait_for_end(&self.socket) } else { Ok(()) }
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn info(&self) -> Info {
        Info::of(&self.socket, self.tcp)
    }
}

/// Whether a socket is connected; `WouldBlock` while it is on its way.
pub(super) fn connected(socket: &Socket) -> io::Result<()> {
    match socket.take_error()? {
        Some(error) => Err(error),
        None => match socket.peer_addr() {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Err(io::ErrorKind::WouldBlock.into()),
            peer => peer.map(|_| ()),
        },
    }
}

/// Has the kernel send a part of a file.
pub(super) fn send_file(socket: &Socket, file: &File, offset: u64, length: usize) -> io::Result<usize> {
    let mut offset = offset;
    Ok(rustix::fs::sendfile(socket, file, Some(&mut offset), length)?)
}

/// Says that no more will be sent, and waits until the other side has closed.
pub(super) fn wait_for_end(socket: &Socket) -> io::Result<()> {
    unless_gone(rustix::net::shutdown(socket, rustix::net::Shutdown::Write).map_err(io::Error::from))?;
    let mut rest = [0; 4096];
    loop {
        match rustix::net::recv(socket, &mut rest[..], RecvFlags::empty()) {
            Ok((0, _)) => return Ok(()),
            Ok(_) => {}
            Err(error) => return unless_gone(Err(error.into())),
        }
    }
}

/// That the other side was faster in closing is no failure of a close.
pub(super) fn unless_gone(closed: io::Result<()>) -> io::Result<()> {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    match closed {
        Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected) => Ok(()),
        closed => closed,
    }
}
