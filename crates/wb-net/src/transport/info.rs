//! Kernel statistics of connections, summed over a run.

use std::os::fd::BorrowedFd;

use wb_results::net::ConnectionInfo;

use super::sockopt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfoKind {
    Buffers,
    /// Buffer sizes and TCP statistics.
    Tcp,
    /// The single buffer of vsock, which is the receiver's.
    Vsock,
}

pub fn with_buffers(info: ConnectionInfo, socket: BorrowedFd<'_>, kind: InfoKind) -> ConnectionInfo {
    let buffer = |size: rustix::io::Result<usize>| size.unwrap_or(0) as u64;
    let (send_buffer, receive_buffer) = match kind {
        InfoKind::Buffers | InfoKind::Tcp => (
            buffer(rustix::net::sockopt::socket_send_buffer_size(socket)),
            buffer(rustix::net::sockopt::socket_recv_buffer_size(socket)),
        ),
        InfoKind::Vsock => (0, super::vsock::buffer_size(socket).unwrap_or(0)),
    };
    ConnectionInfo { send_buffer, receive_buffer, ..info }
}

/// The statistics of a socket without its buffers, with at most one system call.
pub fn connection_info(socket: BorrowedFd<'_>, kind: InfoKind) -> ConnectionInfo {
    let mut info = ConnectionInfo { connections: 1, ..ConnectionInfo::default() };
    if let Some(tcp) = (kind == InfoKind::Tcp).then(|| tcp_info(socket)).flatten() {
        info.retransmits = u64::from(tcp.tcpi_total_retrans);
        info.rtt_ns = u64::from(tcp.tcpi_rtt) * 1000;
        info.rtt_max_ns = info.rtt_ns;
    }
    info
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
        let path = connection_info(stream.as_fd(), InfoKind::Tcp);
        let info = with_buffers(path, stream.as_fd(), InfoKind::Tcp);
        let mut sum = info;
        sum.add(&path);
        assert_eq!((sum.connections, sum.send_buffer, sum.receive_buffer), (2, info.send_buffer, info.receive_buffer));
        assert!(info.rtt_ns > 0 && info.send_buffer > 0 && info.receive_buffer > 0, "{info:?}");
    }
}
