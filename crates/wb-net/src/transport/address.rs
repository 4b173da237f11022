//! Addresses of sockets and of hosts.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// The address of one socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TransportAddress {
    /// Address and port, for IP protocols.
    Ip(SocketAddr),
    /// A name in the abstract namespace of UNIX sockets, and the process that owns it.
    Unix {
        /// The name without its leading zero byte.
        name: String,
        /// Process ID of the owner, 0 if unknown.
        process: u32,
    },
    /// Address of a VM or its host.
    Vsock {
        /// Context ID.
        cid: u32,
        /// Port.
        port: u32,
    },
}

/// The address of a machine, as seen on the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HostAddress {
    /// An IP address.
    Ip(IpAddr),
    /// A vsock context ID.
    Vsock(u32),
}

impl std::fmt::Display for HostAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Vsock(cid) => write!(f, "vsock:{cid}"),
        }
    }
}
