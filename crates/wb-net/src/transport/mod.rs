//! Transports: how bytes get to the other side, one file per protocol.
//!
//! A strand sees [`Transport`] alone. Where a socket does not block, [`io::ErrorKind::WouldBlock`] says that
//! [`Transport::waits`] tells what to wait for; where it blocks, the system call waits, and a signal ends it with
//! [`io::ErrorKind::Interrupted`].
//!
//! [`ends`] says how the two sides come to know each other's addresses.

pub mod address;
mod certificate;
pub mod datagram;
pub mod info;
pub mod link;
pub mod listener;
mod port_pool;
mod quic;
pub mod sctp;
pub mod socket;
mod sockopt;
pub mod stream;
mod tls;
mod vsock;

use std::{
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    os::unix::fs::FileExt,
};

use crate::engine::clock::Nanos;
use crate::language::Message;
pub use info::{ConnectionInfo, InfoKind};

/// One connection.
pub trait Transport: Send {
    /// Hands bytes over to be sent; says how many were taken, at least one.
    fn send(&mut self, bytes: &[u8], how: &Message) -> io::Result<usize>;

    /// Hands several datagrams of one size over at once; says how many were taken, at least one.
    fn send_many(&mut self, bytes: &[u8], size: usize, how: &Message) -> io::Result<usize> {
        self.send(&bytes[..size], how).map(|_| 1)
    }

    /// Takes what has come, at most as much as there is room for; 0 when the other side has closed.
    fn receive(&mut self, into: &mut [u8], how: &Message) -> io::Result<usize>;

    /// Goes on with making the connection, until it is made.
    fn establish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Sends what was taken but is still here; most have nothing.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Does what is left to do while nobody uses the connection: sends what was taken and, where no kernel does it,
    /// answers the other side. Says whether that has to be done again soon.
    fn maintain(&mut self) -> bool {
        false
    }

    /// Sends a part of a file; says how many bytes were taken.
    fn send_file(&mut self, file: &File, offset: u64, length: usize, how: &Message) -> io::Result<usize> {
        self.send_file_by_copy(file, offset, length, how)
    }

    /// The same without the kernel's help.
    fn send_file_by_copy(&mut self, file: &File, offset: u64, length: usize, how: &Message) -> io::Result<usize> {
        let mut part = vec![0; length.min(FILE_CHUNK)];
        let read = file.read_at(&mut part, offset)?;
        self.send(&part[..read], how)
    }

    /// What to wait for after `WouldBlock`.
    fn wait_condition(&self, intent: Intent) -> WaitCondition {
        let interest = match intent {
            Intent::Send => Interest::Writable,
            Intent::Receive => Interest::Readable,
        };
        WaitCondition { fd: Some(self.socket().as_raw_fd()), interest, until: None }
    }

    /// Begins an orderly end; whoever opened the connection waits for the other side to have closed, so that the
    /// waiting that the protocol asks for (TIME_WAIT) falls to the side whose port is not needed again.
    fn close(&mut self, opener: bool) -> io::Result<()>;

    /// The socket beneath.
    fn socket(&self) -> BorrowedFd<'_>;

    /// What can be asked of the socket.
    fn info_kind(&self) -> InfoKind {
        InfoKind::Buffers
    }

    /// What is known of the connection's path: with one system call at most, as connections may be closed all the
    /// time.
    fn path_info(&self) -> ConnectionInfo {
        ConnectionInfo::from_socket(self.socket(), self.info_kind())
    }

    /// The same, with the socket's buffers.
    fn info(&self) -> ConnectionInfo {
        self.path_info().with_buffers(self.socket(), self.info_kind())
    }
}

/// How much of a file is read at once where the kernel cannot send it itself.
const FILE_CHUNK: usize = 1 << 16;

/// What a strand was about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Send, connect or flush.
    Send,
    /// Receive or accept.
    Receive,
}

/// Which readiness of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Something can be read.
    Readable,
    /// Something can be written.
    Writable,
    /// Either.
    Both,
}

/// What has to happen before it makes sense to go on.
#[derive(Debug, Clone, Copy)]
pub struct WaitCondition {
    /// Something on this descriptor.
    pub fd: Option<RawFd>,
    /// What on it.
    pub interest: Interest,
    /// Or this point in time.
    pub until: Option<Nanos>,
}

impl WaitCondition {
    /// For a point in time alone.
    pub fn until(point: Nanos) -> Self {
        Self { fd: None, interest: Interest::Readable, until: Some(point) }
    }

    /// For something to be readable.
    pub fn readable(fd: impl AsFd) -> Self {
        Self { fd: Some(fd.as_fd().as_raw_fd()), interest: Interest::Readable, until: None }
    }

    /// Or for a point in time, the earlier one.
    #[must_use]
    pub fn or_until(self, point: Nanos) -> Self {
        Self { until: Some(self.until.map_or(point, |until| until.min(point))), ..self }
    }
}
