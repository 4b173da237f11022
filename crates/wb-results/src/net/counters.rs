//! The kernel's counters of network interfaces and protocols: an independent check of the engine's own counters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counters of one network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceCounters {
    /// Name of the interface.
    pub name: String,
    /// Packets received.
    pub packets_in: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Bytes received, including headers.
    pub bytes_in: u64,
    /// Bytes sent, including headers.
    pub bytes_out: u64,
    /// Received packets with errors, or dropped.
    pub errors_in: u64,
    /// Outgoing packets with errors, or dropped.
    pub errors_out: u64,
}

/// Counters of protocols, for IPv4 and IPv6 together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolCounters {
    /// Retransmitted TCP segments.
    pub tcp_retransmits: u64,
    /// UDP datagrams to a port without a socket, including those that arrived after their socket was closed.
    pub udp_no_port: u64,
    /// UDP datagrams dropped because the receive buffer was full.
    pub udp_receive_buffer_errors: u64,
    /// UDP datagrams dropped because the send buffer was full.
    pub udp_send_buffer_errors: u64,
}

/// Differences of the kernel's counters between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkCounters {
    /// Interfaces with traffic.
    pub interfaces: Vec<InterfaceCounters>,
    /// Counters of protocols.
    pub protocols: ProtocolCounters,
}
