//! Where an end of a connection is.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// The address of one socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TransportAddress {
    /// Of IP protocols.
    Ip(SocketAddr),
    /// A name in the abstract namespace of UNIX sockets, and the process that holds it.
    Unix {
        /// The name without its leading zero byte.
        name: String,
        /// Its owner's process id, 0 where that is unknown.
        process: u32,
    },
    /// Of a VM or its host.
    Vsock {
        /// Context id.
        cid: u32,
        /// Port.
        port: u32,
    },
}

impl TransportAddress {
    /// The IP address, of those that have one.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Ip(address) => Some(address.ip()),
            _ => None,
        }
    }
}

/// Where a machine is, as the control connection knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HostAddress {
    /// At an IP address.
    Ip(IpAddr),
    /// At a context id.
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
