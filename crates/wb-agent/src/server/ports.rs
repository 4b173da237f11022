//! Free ports of the machine, found by binding to them.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};

use crate::protocol::Fault;

/// Finds a port in the range that no TCP or UDP socket is bound to, on any address. The search starts at a random port,
/// so that two callers at one time rarely find the same.
pub(super) fn find_free_port(ports: RangeInclusive<u16>) -> Result<u16, Fault> {
    let (first, last) = (*ports.start(), *ports.end());
    let count = u64::from(last.saturating_sub(first)) + 1;
    let start = RandomState::new().hash_one(first) % count;
    // Below `count`, which is at most 65,536.
    let candidates = (0..count).map(|step| first + ((start + step) % count) as u16);
    for port in candidates {
        // Not found in the tables of /proc/net, which the kernel walks as a whole.
        match bind_all(port) {
            Ok(()) => return Ok(port),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(Fault::Refused { why: format!("cannot bind to port {port}: {error}") }),
        }
    }
    Err(Fault::Refused { why: format!("no free port from {first} to {last}") })
}

/// Binds a TCP and a UDP socket to a port of all addresses, and closes them.
fn bind_all(port: u16) -> io::Result<()> {
    for kind in [SocketType::STREAM, SocketType::DGRAM] {
        match bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)), kind) {
            // Without IPv6. Otherwise such a socket covers IPv4, too, whatever the default of the system is.
            Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => {
                bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), kind)?;
            }
            other => drop(other?),
        }
    }
    Ok(())
}

/// Binds a socket without `SO_REUSEADDR`: a port with connections in TIME_WAIT is not free, because a server that does
/// not set the option cannot bind to it.
fn bind(address: SocketAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
    let socket =
        rustix::net::socket(if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET }, kind, None)?;
    if address.is_ipv6() {
        rustix::net::sockopt::set_ipv6_v6only(&socket, false)?;
    }
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn ports_of_other_sockets_are_not_free() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        for port in [tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port()] {
            let fault = find_free_port(port..=port).unwrap_err();
            assert_eq!(fault.to_string(), format!("no free port from {port} to {port}"));
        }
    }

    #[test]
    fn a_port_with_a_closed_connection_is_not_free() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        // The side that closes first waits.
        drop(accepted);
        drop(listener);
        drop(client);
        find_free_port(address.port()..=address.port()).unwrap_err();
    }

    #[test]
    fn a_free_port_is_in_the_range_and_free_afterwards() {
        let port = find_free_port(20_000..=32_000).unwrap();
        assert!((20_000..=32_000).contains(&port));
        TcpListener::bind(("127.0.0.1", port)).unwrap();
    }
}
