//! What strands report while they run.

use serde::{Deserialize, Serialize};

/// Totals of a strand since the start of the run, and the state of its connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StrandProgress {
    pub group: u32,
    pub transaction: u32,
    pub strand: u32,
    /// On the engine's monotonic clock, in nanoseconds.
    pub time: u64,
    /// Bytes in complete messages, like `received`.
    pub sent: u64,
    pub received: u64,
    /// Executions of flowops.
    pub operations: u64,
    pub datagrams: DatagramProgress,
    /// The connection that it opened last, if that is open.
    pub connection: Option<ConnectionSnapshot>,
}

/// What a receiver of numbered datagrams has seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramProgress {
    /// Datagrams that were sent before others that arrived earlier.
    pub reordered: u64,
    /// Datagrams that are missing before the last one.
    pub missing: u64,
    /// Interarrival jitter in nanoseconds (RFC 3550, section 6.4.1).
    pub jitter_ns: f64,
}

/// What the kernel knows of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSnapshot {
    pub local: String,
    pub peer: String,
    /// Bytes, like `receive_buffer`.
    pub send_buffer: u64,
    pub receive_buffer: u64,
    /// `None` if the connection is not of TCP, or the kernel does not report it.
    pub tcp: Option<TcpSnapshot>,
}

/// The state of a TCP connection (`TCP_INFO` of tcp(7)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSnapshot {
    pub congestion: String,
    /// Maximum segment size in bytes.
    pub mss: u64,
    /// Segments so far.
    pub retransmits: u64,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Window that the other side offers, in bytes; none on kernels before 5.4, which do not report it.
    pub send_window: Option<u64>,
    /// Smoothed round-trip time.
    pub rtt_us: u64,
    /// Mean deviation of the round-trip time.
    pub rtt_variance_us: u64,
    /// Maximum size of a packet on the path, in bytes.
    pub path_mtu: u64,
}
