//! Byte streams that the kernel implements completely: TCP, UNIX and vsock.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, sendmsg};
use socket2::Socket;

use super::{CloseMode, InfoKind, Transport, cookie, receive_flags, send_flags};
use wb_net_profile::{Message, SyscallFamily};

#[derive(Debug)]
pub struct StreamSocket {
    socket: Socket,
    info_kind: InfoKind,
    established: bool,
    /// The cookie, until it has been sent.
    cookie: Option<UnsentCookie>,
    /// Whether the cookie is sent with the first message, not when the connection is established.
    defers_cookie: bool,
    graceful_close: GracefulClose,
}

impl StreamSocket {
    /// Creates a transport from a socket that is connected or connecting. The connecting side has a cookie.
    pub(crate) fn new(
        socket: Socket,
        info_kind: InfoKind,
        established: bool,
        cookie: Option<[u8; cookie::LENGTH]>,
        defers_cookie: bool,
    ) -> Self {
        let cookie = cookie.map(UnsentCookie::new);
        Self { socket, info_kind, established, cookie, defers_cookie, graceful_close: GracefulClose::default() }
    }

    /// Sends the cookie and as much of a message as the socket accepts, with one system call.
    #[cold]
    fn send_with_cookie(&mut self, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
        while let Some(cookie) = &mut self.cookie {
            // Where this side sends first, one call carries cookie and message; otherwise the cookie follows the
            // handshake, after the connect has been timed. It is in no byte count.
            let slices = [IoSlice::new(cookie.unsent()), IoSlice::new(bytes)];
            let sent = sendmsg(&self.socket, &slices, &mut SendAncillaryBuffer::default(), flags)?;
            let moved = sent.saturating_sub(cookie.unsent().len());
            if cookie.consume(sent) {
                self.cookie = None;
            }
            if moved > 0 {
                return Ok(moved);
            }
        }
        Ok(rustix::net::send(&self.socket, bytes, flags)?)
    }

    #[cold]
    fn send_cookie(&mut self, flags: SendFlags) -> io::Result<()> {
        if let Some(cookie) = &mut self.cookie {
            cookie.send(&self.socket, flags)?;
            self.cookie = None;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct UnsentCookie {
    bytes: [u8; cookie::LENGTH],
    sent: usize,
}

impl UnsentCookie {
    pub(super) fn new(bytes: [u8; cookie::LENGTH]) -> Self {
        Self { bytes, sent: 0 }
    }

    fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Marks bytes as sent; returns whether none is left.
    fn consume(&mut self, count: usize) -> bool {
        self.sent = (self.sent + count).min(cookie::LENGTH);
        self.sent == cookie::LENGTH
    }

    pub(super) fn send(&mut self, socket: &Socket, flags: SendFlags) -> io::Result<()> {
        while !self.unsent().is_empty() {
            let sent = rustix::net::send(socket, self.unsent(), flags | SendFlags::NOSIGNAL)?;
            self.consume(sent);
        }
        Ok(())
    }
}

impl Transport for StreamSocket {
    #[inline]
    fn send(&mut self, bytes: &[u8], message: &Message) -> io::Result<usize> {
        let flags = send_flags(message);
        if self.cookie.is_some() {
            return self.send_with_cookie(bytes, flags);
        }
        Ok(match message.call {
            SyscallFamily::Vectored => rustix::io::writev(&self.socket, &[IoSlice::new(bytes)])?,
            _ => rustix::net::send(&self.socket, bytes, flags)?,
        })
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8], message: &Message) -> io::Result<usize> {
        if self.cookie.is_some() {
            self.send_cookie(SendFlags::empty())?;
        }
        Ok(match message.call {
            SyscallFamily::Vectored => rustix::io::readv(&self.socket, &mut [IoSliceMut::new(into)])?,
            _ => rustix::net::recv(&self.socket, into, receive_flags(message))?.0,
        })
    }

    fn establish(&mut self) -> io::Result<()> {
        if !self.established {
            check_connected(&self.socket)?;
            self.established = true;
        }
        if self.cookie.is_some() && !self.defers_cookie {
            self.send_cookie(SendFlags::DONTWAIT)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_cookie(SendFlags::DONTWAIT)
    }

    fn send_file(&mut self, file: &File, offset: u64, length: usize, _: &Message) -> io::Result<usize> {
        if self.cookie.is_some() {
            self.send_cookie(SendFlags::empty())?;
        }
        send_file(&self.socket, file, offset, length)
    }

    fn close(&mut self, mode: CloseMode) -> io::Result<()> {
        if self.cookie.is_some() {
            ignore_disconnect(self.send_cookie(SendFlags::DONTWAIT))?;
        }
        match mode {
            CloseMode::Acceptor => Ok(()),
            CloseMode::Connector | CloseMode::DrainingAcceptor => self.graceful_close.finish(&self.socket, receive_raw),
        }
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn info_kind(&self) -> InfoKind {
        self.info_kind
    }
}

/// Checks whether a socket is connected; `WouldBlock` while it is connecting.
pub(super) fn check_connected(socket: &Socket) -> io::Result<()> {
    match socket.take_error()? {
        Some(error) => Err(error),
        None => match socket.peer_addr() {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Err(io::ErrorKind::WouldBlock.into()),
            peer => peer.map(|_| ()),
        },
    }
}

/// Sends a part of a file with sendfile(2).
pub(super) fn send_file(socket: &Socket, file: &File, offset: u64, length: usize) -> io::Result<usize> {
    let mut offset = offset;
    Ok(rustix::fs::sendfile(socket, file, Some(&mut offset), length)?)
}

#[derive(Debug, Default)]
pub(super) struct GracefulClose {
    shutdown_sent: bool,
}

impl GracefulClose {
    /// Shuts down the sending direction, and waits until the other side has closed; to be repeated after `WouldBlock`.
    pub(super) fn finish(
        &mut self,
        socket: &Socket,
        mut receive: impl FnMut(&Socket, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<()> {
        // Only once: every shutdown wakes the threads that wait for this socket.
        if !self.shutdown_sent {
            ignore_disconnect(rustix::net::shutdown(socket, rustix::net::Shutdown::Write).map_err(io::Error::from))?;
            self.shutdown_sent = true;
        }
        let mut rest = [0; 4096];
        loop {
            match receive(socket, &mut rest) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return ignore_disconnect(Err(error)),
            }
        }
    }
}

pub(super) fn receive_raw(socket: &Socket, into: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(socket, into, RecvFlags::empty())?.0)
}

/// Treats a disconnect during a close as success: the other side has closed first.
pub(super) fn ignore_disconnect(result: io::Result<()>) -> io::Result<()> {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    match result {
        Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected) => Ok(()),
        result => result,
    }
}
