//! Transports: connections between both sides, with one file per protocol.
//!
//! A strand uses only [`Transport`]. With a non-blocking socket, [`io::ErrorKind::WouldBlock`] means that
//! [`Transport::wait_condition`] returns the condition to wait for; with a blocking one, the system call waits, and a
//! signal ends it with [`io::ErrorKind::Interrupted`].
//!
//! [`link`] describes how both sides prepare and open connections.

pub mod address;
mod certificate;
pub mod cookie;
pub mod data_ports;
pub mod datagram;
mod datagram_port;
pub(crate) mod descriptors;
pub mod handover;
pub mod info;
pub mod link;
mod listener;
mod quic;
pub mod sctp;
mod shared_listener;
pub mod socket;
mod sockopt;
pub mod stream;
mod tls;
pub(crate) mod unverified;
mod vsock;
pub mod watched_connection;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileExt;

use rustix::net::{RecvFlags, SendFlags};

use crate::engine::clock::Nanos;
pub use info::InfoKind;
use wb_net_profile::Message;
use wb_results::net::ConnectionInfo;

/// One connection.
pub trait Transport: Send {
    /// Sends bytes; returns how many were accepted, at least one.
    fn send(&mut self, bytes: &[u8], message: &Message) -> io::Result<usize>;

    /// Sends several datagrams of one size; returns how many were accepted, at least one.
    fn send_many(&mut self, bytes: &[u8], size: usize, message: &Message) -> io::Result<usize> {
        self.send(&bytes[..size], message).map(|_| 1)
    }

    /// Receives what has arrived, up to the length of the buffer; 0 when the other side has closed.
    fn receive(&mut self, into: &mut [u8], message: &Message) -> io::Result<usize>;

    /// Continues to establish the connection; must be called until it succeeds.
    fn establish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Sends data that was accepted and is still buffered; most transports buffer nothing.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Maintains an idle connection: sends buffered data and, for protocols in user space (QUIC), answers the peer. Returns
    /// whether that must be repeated soon.
    fn maintain(&mut self) -> bool {
        false
    }

    /// Sends a part of a file; returns how many bytes were accepted.
    fn send_file(&mut self, file: &File, offset: u64, length: usize, message: &Message) -> io::Result<usize> {
        self.send_file_by_copy(file, offset, length, message)
    }

    /// Sends a part of a file through a buffer, without the kernel's help.
    fn send_file_by_copy(&mut self, file: &File, offset: u64, length: usize, message: &Message) -> io::Result<usize> {
        let mut chunk = vec![0; length.min(FILE_CHUNK)];
        let read = file.read_at(&mut chunk, offset)?;
        self.send(&chunk[..read], message)
    }

    /// After `WouldBlock`.
    fn wait_condition(&self, intent: Intent) -> WaitCondition {
        let interest = match intent {
            Intent::Send => Interest::Writable,
            Intent::Receive => Interest::Readable,
        };
        WaitCondition { fd: Some(self.socket().as_raw_fd()), interest, until: None }
    }

    /// Closes the connection gracefully, as `mode` requires; to be called again while that is pending.
    fn close(&mut self, mode: CloseMode) -> io::Result<()>;

    fn socket(&self) -> BorrowedFd<'_>;

    fn info_kind(&self) -> InfoKind {
        InfoKind::Buffers
    }

    /// Statistics of the connection's path: with at most one system call, as connections may be closed at a high rate.
    fn path_info(&self) -> ConnectionInfo {
        info::connection_info(self.socket(), self.info_kind())
    }

    fn info(&self) -> ConnectionInfo {
        info::with_buffers(self.path_info(), self.socket(), self.info_kind())
    }
}

#[inline]
fn send_flags(message: &Message) -> SendFlags {
    // No SIGPIPE: a lost peer is an ordinary error.
    SendFlags::NOSIGNAL | if message.non_blocking { SendFlags::DONTWAIT } else { SendFlags::empty() }
}

#[inline]
fn receive_flags(message: &Message) -> RecvFlags {
    if message.non_blocking { RecvFlags::DONTWAIT } else { RecvFlags::empty() }
}

/// Bytes of a file that are read at once where the kernel cannot send the file itself.
const FILE_CHUNK: usize = 1 << 16;

/// Whether this machine does not support an operation at all.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
        || matches!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT | libc::ESOCKTNOSUPPORT))
}

/// Whether an operation on a socket has begun and is not complete.
pub(crate) fn is_pending(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EALREADY))
}

/// How one side closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseMode {
    /// It ends its direction, and waits until the other side has closed: by then that has read everything.
    Connector,
    /// It closes at once: it has received everything.
    Acceptor,
    /// It receives what the other side still sends, and waits for its end: closing earlier would reset the connection.
    DrainingAcceptor,
}

/// The operation that a strand waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    Send,
    Receive,
}

/// The readiness of a descriptor to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Readable,
    Writable,
    Both,
}

#[derive(Debug, Clone, Copy)]
pub struct WaitCondition {
    pub fd: Option<RawFd>,
    pub interest: Interest,
    /// A point in time that ends the wait, too.
    pub until: Option<Nanos>,
}

impl WaitCondition {
    pub fn until(point: Nanos) -> Self {
        Self { fd: None, interest: Interest::Readable, until: Some(point) }
    }

    pub fn readable(fd: impl AsFd) -> Self {
        Self { fd: Some(fd.as_fd().as_raw_fd()), interest: Interest::Readable, until: None }
    }

    /// Adds a point in time that ends the wait, unless an earlier one is set.
    #[must_use]
    pub fn or_until(self, point: Nanos) -> Self {
        Self { until: Some(self.until.map_or(point, |until| until.min(point))), ..self }
    }
}
