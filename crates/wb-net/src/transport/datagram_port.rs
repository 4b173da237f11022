//! A port of datagrams that several strands share: each gets a socket of its own once its peer is known.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::thread;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::{RecvFlags, recvfrom};
use socket2::Socket;

use super::address::TransportAddress;
use super::cookie::{self, ConnectionPurpose};
use super::data_ports::Routes;
use super::socket::{self, SocketConfig};
use wb_net_profile::Endpoint;

/// A port of datagrams. The thread that waits for cookies ends when it is dropped. Its socket is bound, but not
/// connected: the kernel gives datagrams of known peers to the sockets that are connected to them, and all others to
/// this one, which drops them.
#[derive(Debug)]
pub(super) struct DatagramPort {
    pub(super) address: TransportAddress,
    /// `None` if the port belongs to the parent process.
    shutdown: Option<OwnedFd>,
}

impl DatagramPort {
    pub(super) fn start(config: &SocketConfig<'_>, port: u16, routes: Weak<Routes>) -> io::Result<Arc<Self>> {
        let socket = config.bind(port, true)?;
        let address = socket::local_address(&socket, config.local)?;
        let shutdown = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let watched_shutdown = shutdown.try_clone()?;
        let bound = config.local_socket_address(address.port())?;
        thread::Builder::new().name("datagrams".to_owned()).spawn(move || {
            serve(&socket, bound, &watched_shutdown, &routes);
        })?;
        Ok(Arc::new(Self { address, shutdown: Some(shutdown) }))
    }

    pub(super) fn owned_elsewhere(address: TransportAddress) -> Arc<Self> {
        Arc::new(Self { address, shutdown: None })
    }
}

impl Drop for DatagramPort {
    fn drop(&mut self) {
        if let Some(shutdown) = &self.shutdown {
            // Ends the thread.
            let _: Result<usize, _> = rustix::io::write(shutdown, &1_u64.to_ne_bytes());
        }
    }
}

fn serve(socket: &Socket, bound: SocketAddr, shutdown: &OwnedFd, routes: &Weak<Routes>) {
    let mut buffer = [0; 2 * cookie::LENGTH];
    loop {
        let mut watched = [PollFd::new(socket, PollFlags::IN), PollFd::new(shutdown, PollFlags::IN)];
        if poll(&mut watched, None).is_err() {
            continue;
        }
        if !watched[1].revents().is_empty() {
            return;
        }
        while let Ok((length, _, from)) = recvfrom(socket, &mut buffer, RecvFlags::DONTWAIT) {
            let Some(Ok(from)) = from.map(SocketAddr::try_from) else { continue };
            let Ok(bytes) = <&[u8; cookie::LENGTH]>::try_from(&buffer[..length]) else { continue };
            let Some(routes) = routes.upgrade() else { return };
            // Without a socket the peer repeats its cookie.
            if let Some(link) = routes.verify(bytes)
                && link.cookie.purpose == ConnectionPurpose::Connection
                && let Ok(socket) = connected_socket(&link.endpoint, bound, from)
            {
                link.deliver(socket);
            }
        }
    }
}

fn connected_socket(endpoint: &Endpoint, bound: SocketAddr, peer: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        socket2::Domain::for_address(bound),
        socket2::Type::DGRAM.nonblocking().cloexec(),
        Some(socket2::Protocol::UDP),
    )?;
    socket::set_buffer_sizes(&socket, endpoint)?;
    socket.set_reuse_port(true)?;
    socket.bind(&bound.into())?;
    // The kernel drops what comes from anybody else, so a measured datagram carries no cookie; address translation
    // costs nothing.
    socket.connect(&peer.into())?;
    Ok(socket)
}
