//! Addresses of sockets and of hosts.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TransportAddress {
    Ip(SocketAddr),
    /// A name in the abstract namespace of UNIX sockets, without its leading zero byte.
    Unix(String),
    /// Address of a VM or its host.
    Vsock {
        /// Context ID.
        cid: u32,
        port: u32,
    },
}

impl TransportAddress {
    /// The port of an IP address; 0 for others.
    pub fn port(&self) -> u16 {
        match self {
            Self::Ip(address) => address.port(),
            Self::Unix(_) | Self::Vsock { .. } => 0,
        }
    }
}

impl std::fmt::Display for TransportAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix(name) => write!(f, "@{name}"),
            Self::Vsock { cid, port } => write!(f, "vsock:{cid}:{port}"),
        }
    }
}

/// The address of a machine, as seen on the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HostAddress {
    Ip {
        address: IpAddr,
        /// The interface of a link-local IPv6 address; 0 for others.
        scope: u32,
    },
    /// A vsock context ID.
    Vsock(u32),
}

impl HostAddress {
    /// The host of a socket's address. An IPv4-mapped IPv6 address is that of its IPv4 address.
    pub fn new(address: SocketAddr) -> Self {
        let scope = match address {
            SocketAddr::V6(address) if address.ip().to_ipv4_mapped().is_none() => address.scope_id(),
            _ => 0,
        };
        Self::Ip { address: address.ip().to_canonical(), scope }
    }

    /// The host with an IP address that is not link-local.
    pub fn ip(address: IpAddr) -> Self {
        Self::Ip { address, scope: 0 }
    }

    /// A socket's address on this host; `None` for a vsock context ID.
    pub fn with_port(self, port: u16) -> Option<SocketAddr> {
        match self {
            Self::Ip { address: IpAddr::V6(address), scope } => Some(SocketAddrV6::new(address, port, 0, scope).into()),
            Self::Ip { address, .. } => Some(SocketAddr::new(address, port)),
            Self::Vsock(_) => None,
        }
    }
}

impl std::fmt::Display for HostAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip { address, scope: 0 } => address.fmt(f),
            Self::Ip { address, scope } => write!(f, "{address}%{scope}"),
            Self::Vsock(cid) => write!(f, "vsock:{cid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_keeps_its_interface() {
        let host = HostAddress::new("[fe80::1%3]:20000".parse().unwrap());
        assert_eq!(host.to_string(), "fe80::1%3");
        assert_eq!(host.with_port(7).unwrap().to_string(), "[fe80::1%3]:7");
        let mapped = HostAddress::new("[::ffff:192.0.2.1]:1".parse().unwrap());
        assert_eq!((mapped.to_string(), mapped.with_port(2)), ("192.0.2.1".to_owned(), "192.0.2.1:2".parse().ok()));
    }
}
