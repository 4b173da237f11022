//! Kernel statistics of connections, summed over a run.

use std::os::fd::BorrowedFd;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sockopt;

/// Kernel statistics of one connection, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionInfo {
    /// Number of connections.
    pub connections: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Mean of the smoothed round-trip times, in nanoseconds; 0 if the protocol does not measure them.
    pub rtt_ns: u64,
    /// Maximum of the smoothed round-trip times, in nanoseconds.
    pub rtt_max_ns: u64,
    /// Size of the send buffer granted by the kernel, in bytes; the minimum of several.
    pub send_buffer: u64,
    /// Size of the receive buffer granted by the kernel, in bytes; the minimum of several.
    pub receive_buffer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfoKind {
    Buffers,
    /// Buffer sizes and TCP statistics.
    Tcp,
    /// The single buffer of vsock, which is the receiver's.
    Vsock,
}

impl ConnectionInfo {
    #[must_use]
    pub fn with_buffers(self, socket: BorrowedFd<'_>, kind: InfoKind) -> Self {
        let buffer = |size: rustix::io::Result<usize>| size.unwrap_or(0) as u64;
        let (send_buffer, receive_buffer) = match kind {
            InfoKind::Buffers | InfoKind::Tcp => (
                buffer(rustix::net::sockopt::socket_send_buffer_size(socket)),
                buffer(rustix::net::sockopt::socket_recv_buffer_size(socket)),
            ),
            InfoKind::Vsock => (0, super::vsock::buffer_size(socket).unwrap_or(0)),
        };
        Self { send_buffer, receive_buffer, ..self }
    }

    /// The statistics of a socket without its buffers, with at most one system call.
    pub fn from_socket(socket: BorrowedFd<'_>, kind: InfoKind) -> Self {
        let mut info = Self { connections: 1, ..Self::default() };
        if let Some(tcp) = (kind == InfoKind::Tcp).then(|| tcp_info(socket)).flatten() {
            info.retransmits = u64::from(tcp.tcpi_total_retrans);
            info.rtt_ns = u64::from(tcp.tcpi_rtt) * 1000;
            info.rtt_max_ns = info.rtt_ns;
        }
        info
    }

    pub fn add(&mut self, other: &Self) {
        let connections = self.connections + other.connections;
        if connections == 0 {
            return;
        }
        let smaller_nonzero =
            |left: u64, right: u64| if left == 0 || right == 0 { left.max(right) } else { left.min(right) };
        *self = Self {
            connections,
            retransmits: self.retransmits + other.retransmits,
            rtt_ns: (self.rtt_ns * self.connections + other.rtt_ns * other.connections) / connections,
            rtt_max_ns: self.rtt_max_ns.max(other.rtt_max_ns),
            send_buffer: smaller_nonzero(self.send_buffer, other.send_buffer),
            receive_buffer: smaller_nonzero(self.receive_buffer, other.receive_buffer),
        };
    }
}

#[allow(unsafe_code)]
pub(super) fn tcp_info(socket: BorrowedFd<'_>) -> Option<libc::tcp_info> {
    // SAFETY: the structure is all numbers, so zeroes are valid.
    let info: libc::tcp_info = unsafe { std::mem::zeroed() };
    // None where the kernel has no statistics of the socket.
    sockopt::get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, info).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

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
