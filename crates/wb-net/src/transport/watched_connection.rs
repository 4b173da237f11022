//! A connection of a strand that another thread observes: its addresses, and what its kernel knows of it.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use socket2::SockRef;
use wb_results::net::{ConnectionSnapshot, TcpSnapshot};

use super::info::{InfoKind, tcp_info};

/// The connection that a strand has open. Only opening and closing it, and observing it, take the lock.
#[derive(Debug, Default)]
pub struct WatchedConnection(Mutex<Option<(OwnedFd, InfoKind)>>);

impl WatchedConnection {
    /// Begins to observe a connection, instead of an earlier one.
    pub fn watch(&self, socket: BorrowedFd<'_>, kind: InfoKind) {
        // None if no descriptor is left: then nobody observes it.
        // The engine's thread observes through a second descriptor: the measured path does nothing for it.
        let descriptor = socket.try_clone_to_owned().ok();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = descriptor.map(|descriptor| (descriptor, kind));
    }

    /// Ends observing: a descriptor left here would keep the connection open.
    pub fn release(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// `None` if no connection is open.
    pub fn snapshot(&self) -> Option<ConnectionSnapshot> {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (descriptor, kind) = watched.as_ref()?;
        let socket = SockRef::from(descriptor);
        let address = |address: std::io::Result<socket2::SockAddr>| {
            // Empty where the socket has no address of IP.
            let address = address.ok().and_then(|address| address.as_socket());
            let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
            address.map(|address| canonical(address).to_string()).unwrap_or_default()
        };
        let buffer = |size: std::io::Result<usize>| size.unwrap_or(0) as u64;
        Some(ConnectionSnapshot {
            local: address(socket.local_addr()),
            peer: address(socket.peer_addr()),
            send_buffer: buffer(socket.send_buffer_size()),
            receive_buffer: buffer(socket.recv_buffer_size()),
            tcp: (*kind == InfoKind::Tcp).then(|| tcp_snapshot(descriptor.as_fd())).flatten(),
        })
    }
}

fn tcp_snapshot(socket: BorrowedFd<'_>) -> Option<TcpSnapshot> {
    let info = tcp_info(socket)?;
    let congestion = rustix::net::sockopt::tcp_congestion(socket);
    let mss = u64::from(info.tcpi_snd_mss);
    Some(TcpSnapshot {
        // Empty where the kernel does not tell.
        congestion: congestion.unwrap_or_default(),
        mss,
        retransmits: info.tcpi_total_retrans.into(),
        congestion_window: u64::from(info.tcpi_snd_cwnd) * mss,
        send_window: (info.tcpi_snd_wnd > 0).then_some(info.tcpi_snd_wnd.into()),
        rtt_us: info.tcpi_rtt.into(),
        rtt_variance_us: info.tcpi_rttvar.into(),
        path_mtu: info.tcpi_pmtu.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_watched_connection_is_closed_by_its_owner() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (mut far, _) = listener.accept().expect("a connection");
        let watched = WatchedConnection::default();
        assert_eq!(watched.snapshot(), None);
        watched.watch(near.as_fd(), InfoKind::Tcp);
        let snapshot = watched.snapshot().expect("it is open");
        assert_eq!(snapshot.peer, far.local_addr().expect("bound").to_string());
        let tcp = snapshot.tcp.expect("TCP");
        assert!(tcp.mss > 0 && tcp.congestion_window >= tcp.mss && !tcp.congestion.is_empty(), "{tcp:?}");
        watched.release();
        drop(near);
        assert_eq!(far.read(&mut [0]).expect("its end"), 0);
    }
}
