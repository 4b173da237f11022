//! What the kernel knows of a connection, and what a run adds up of it.

use std::os::fd::{AsRawFd, BorrowedFd};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the kernel says of one connection, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionInfo {
    /// Connections that this stands for.
    pub connections: u64,
    /// Segments that were sent again.
    pub retransmits: u64,
    /// The mean of the smoothed round-trip times, in nanoseconds; 0 where the protocol keeps none.
    pub rtt_ns: u64,
    /// The largest of them.
    pub rtt_max_ns: u64,
    /// The send buffer as the kernel granted it, in bytes; the smallest of several.
    pub send_buffer: u64,
    /// The receive buffer as the kernel granted it, in bytes; the smallest of several.
    pub receive_buffer: u64,
}

/// Which kernel statistics a socket offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfoKind {
    /// Its buffers.
    Buffers,
    /// Those, and what TCP keeps.
    Tcp,
    /// The one buffer of vsock, which is the receiver's.
    Vsock,
}

impl ConnectionInfo {
    /// With the buffers of a socket.
    #[must_use]
    pub fn with_buffers(self, socket: BorrowedFd<'_>, known: InfoKind) -> Self {
        use rustix::net::sockopt;
        let buffer = |size: rustix::io::Result<usize>| size.unwrap_or(0) as u64;
        let (send_buffer, receive_buffer) = match known {
            InfoKind::Buffers | InfoKind::Tcp => {
                (buffer(sockopt::socket_send_buffer_size(socket)), buffer(sockopt::socket_recv_buffer_size(socket)))
            }
            InfoKind::Vsock => (0, super::vsock::buffer_size(socket).unwrap_or(0)),
        };
        Self { send_buffer, receive_buffer, ..self }
    }

    /// Of a socket, without its buffers: with one system call at most.
    pub fn from_socket(socket: BorrowedFd<'_>, known: InfoKind) -> Self {
        let mut info = Self { connections: 1, ..Self::default() };
        if let Some(tcp) = (known == InfoKind::Tcp).then(|| tcp_info(socket.as_raw_fd())).flatten() {
            info.retransmits = u64::from(tcp.tcpi_total_retrans);
            info.rtt_ns = u64::from(tcp.tcpi_rtt) * 1000;
            info.rtt_max_ns = info.rtt_ns;
        }
        info
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        let connections = self.connections + other.connections;
        if connections == 0 {
            return;
        }
        let smaller = |one: u64, other: u64| if one == 0 || other == 0 { one.max(other) } else { one.min(other) };
        *self = Self {
            connections,
            retransmits: self.retransmits + other.retransmits,
            rtt_ns: (self.rtt_ns * self.connections + other.rtt_ns * other.connections) / connections,
            rtt_max_ns: self.rtt_max_ns.max(other.rtt_max_ns),
            send_buffer: smaller(self.send_buffer, other.send_buffer),
            receive_buffer: smaller(self.receive_buffer, other.receive_buffer),
        };
    }
}

#[allow(unsafe_code)]
fn tcp_info(socket: std::os::fd::RawFd) -> Option<libc::tcp_info> {
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the structure is all numbers, so zeroes are valid, and the kernel writes at most `length` bytes of it;
    // no library that we use offers TCP_INFO.
    unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let into = (&raw mut info).cast();
        let got = libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, into, &mut length);
        (got == 0).then_some(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        net::{TcpListener, TcpStream},
        os::fd::AsFd,
    };

    #[test]
    fn a_tcp_connection_has_a_round_trip_time_and_buffers() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let path = ConnectionInfo::from_socket(stream.as_fd(), InfoKind::Tcp);
        let info = path.with_buffers(stream.as_fd(), InfoKind::Tcp);
        let mut sum = info;
        sum.add(&path);
        assert_eq!((sum.connections, sum.send_buffer, sum.receive_buffer), (2, info.send_buffer, info.receive_buffer));
        assert!(info.rtt_ns > 0 && info.send_buffer > 0 && info.receive_buffer > 0, "{info:?}");
    }
}
