//! What a profile says, as types: groups of strands that carry out transactions made of flowops.
//!
//! The words are uperf's. A strand is a thread or a process; a flowop is one operation on a connection.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A workload: groups that run beside each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetProfile {
    /// What it is called; says nothing about what it does.
    pub name: String,
    /// At least one.
    pub groups: Vec<Group>,
}

/// Strands that all carry out the same transactions, one after the other, started together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// As given, or `Group0`, `Group1`, … by position.
    pub name: String,
    /// How many strands; at least one.
    pub strands: u32,
    /// What a strand is.
    pub kind: StrandKind,
    /// At least one.
    pub transactions: Vec<Transaction>,
}

/// What carries out a strand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StrandKind {
    /// A thread (`nthreads`).
    Thread,
    /// A process of its own (`nprocs`).
    Process,
}

/// Flowops in order, over and over for as long as its extent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    /// `Txn0`, `Txn1`, … by position in its group.
    pub name: String,
    /// How long.
    pub extent: Extent,
    /// Rounds per second and strand, started by the clock whether or not the last has ended (an open loop).
    pub rate: Option<f64>,
    /// At least one.
    pub flowops: Vec<Flowop>,
}

/// How long a transaction goes on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Extent {
    /// So many rounds per strand; none at all is allowed.
    Iterations(u64),
    /// For a window of this length, the same for all strands of the group.
    Window(Duration),
}

/// One operation, `count` × `repeat` times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flowop {
    /// Its type as reports call it: `connect`, `write`, `recvfrom`, …
    pub name: String,
    /// What it does.
    pub action: FlowopAction,
    /// The name of the connection (`conn`); without, the first that has no name.
    pub connection: Option<u32>,
    /// Times in a row; at least 1.
    pub count: u64,
    /// How often the row of `count` is gone through; at least 1.
    pub repeat: u64,
    /// Messages per system call; 1 unless asked for, at most [`BATCH`]. Each datagram is received by itself, since
    /// any may be lost.
    pub batch: u32,
    /// Executions per second and strand, an open loop.
    pub rate: Option<f64>,
    /// Instead of `count`: over and over for so long.
    pub duration: Option<Duration>,
    /// Whether its failures are counted and passed over (`canfail`).
    pub can_fail: bool,
}

/// So many messages does the kernel take at once (UIO_MAXIOV).
pub const MAX_BATCH: u32 = 1024;

impl Flowop {
    /// How many messages one system call moves: several only if they are all of one size and nothing ends them early.
    pub fn batch(&self) -> u64 {
        let (FlowopAction::Send(message) | FlowopAction::Receive(message)) = &self.action else { return 1 };
        let simple = matches!(message.size, MessageSize::Fixed(_)) && self.rate.is_none() && self.duration.is_none();
        if simple { u64::from(self.batch.clamp(1, MAX_BATCH)) } else { 1 }
    }

    /// How often it is executed in a round that nothing ends early.
    pub fn executions(&self) -> u64 {
        self.count.saturating_mul(self.repeat)
    }
}

/// What a flowop does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FlowopAction {
    /// Opens a connection to the remote host.
    Connect(Box<Endpoint>),
    /// Takes a connection that the remote host opens.
    Accept(Box<Endpoint>),
    /// Closes a connection.
    Disconnect,
    /// Sends one message (write, send, sendto).
    Send(Message),
    /// Receives one message (read, recv, recvfrom, readv).
    Receive(Message),
    /// Sends files (sendfile, sendfilev).
    SendFiles(Files),
    /// Receives what the other side sends as files. Only a mirrored profile has it.
    ReceiveFiles(FileSizes),
    /// Does nothing for a while.
    Think {
        /// For how long.
        duration: Duration,
        /// Whether the CPU is kept busy meanwhile.
        busy: bool,
    },
    /// Does nothing.
    Nop,
    /// Concerns another host than this one. Only a mirrored profile has it, to keep positions as they are.
    Skip,
}

/// Where a connection goes and how it is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The other side, as written: a name, an address, or for vsock a context id.
    pub remote: String,
    /// Local address to use (`localhost`).
    pub local: Option<String>,
    /// By which protocol.
    pub protocol: Protocol,
    /// A fixed port of the side that accepts; otherwise free ones are agreed on.
    pub port: Option<u16>,
    /// Send and receive buffer of the socket in bytes (`wndsz`); without, the kernel tunes them.
    pub window: Option<u32>,
    /// Sends small messages at once (`tcp_nodelay`).
    pub no_delay: bool,
    /// Congestion control of TCP (`cc`).
    pub congestion: Option<String>,
    /// Does not block in system calls, but polls (`non_blocking`).
    pub non_blocking: bool,
    /// Fails when it takes longer (`timeout`).
    pub timeout: Option<Duration>,
    /// Leaves TLS's records to the kernel (`engine=ktls`).
    #[serde(default)]
    pub kernel_tls: bool,
    /// What SCTP is told.
    pub sctp: SctpEndpoint,
}

/// A transport protocol, by its name in profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// TCP
    Tcp,
    /// UDP
    Udp,
    /// TLS over TCP
    #[serde(rename = "ssl")]
    Tls,
    /// SCTP, one to one
    Sctp,
    /// A UNIX stream socket
    Unix,
    /// A UNIX datagram socket
    UnixDgram,
    /// A stream between a VM and its host
    Vsock,
    /// QUIC, a stream per connection
    Quic,
    /// Reliable Datagram Sockets
    Rds,
}

impl Protocol {
    /// Every one.
    pub const ALL: [Self; 9] =
        [Self::Tcp, Self::Udp, Self::Tls, Self::Sctp, Self::Unix, Self::UnixDgram, Self::Vsock, Self::Quic, Self::Rds];

    /// As a profile writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Tls => "ssl",
            Self::Sctp => "sctp",
            Self::Unix => "unix",
            Self::UnixDgram => "unix-dgram",
            Self::Vsock => "vsock",
            Self::Quic => "quic",
            Self::Rds => "rds",
        }
    }

    /// Whether messages are datagrams, which arrive whole or not at all.
    pub fn is_datagram(self) -> bool {
        matches!(self, Self::Udp | Self::UnixDgram | Self::Rds)
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// How many bytes.
    pub size: MessageSize,
    /// How many bytes the other side reads or writes at once (`rsize`), if not the same.
    pub remote_size: Option<u32>,
    /// By which system call.
    pub call: SyscallFamily,
    /// Waits at most so long (`timeout`, `poll_timeout`).
    pub timeout: Option<Duration>,
    /// Does not block in the system call, but polls (`non_blocking`).
    pub non_blocking: bool,
    /// What SCTP is told.
    pub sctp: SctpMessage,
}

/// The size of a message in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageSize {
    /// Always the same; at least 1.
    Fixed(u32),
    /// Uniformly distributed, both ends included; `min` is at least 1 and at most `max`.
    Random {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
}

impl MessageSize {
    /// The largest that it can be.
    pub fn max(self) -> u32 {
        match self {
            Self::Fixed(size) => size,
            Self::Random { max, .. } => max,
        }
    }
}

/// Which family of system calls carries a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SyscallFamily {
    /// `read` and `write`.
    ReadWrite,
    /// `send` and `recv`.
    SendRecv,
    /// `sendto` and `recvfrom`.
    SendToRecvFrom,
    /// `readv` and `writev`.
    Vectored,
}

/// Files to send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// Where they lie, at any depth.
    pub dir: String,
    /// How many per execution; at least 1.
    pub count: u32,
    /// So many bytes per system call; without, a whole file.
    pub chunk: Option<u32>,
}

/// What the other side's files are like, and how they are picked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileSizes {
    /// The size of each in bytes, in the sender's order.
    pub sizes: Vec<u64>,
    /// How many per execution; at least 1.
    pub count: u32,
}

/// What an SCTP association is told (RFC 4960, RFC 6458); times in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SctpEndpoint {
    /// `sctp_rto_min`
    pub rto_min: Option<u32>,
    /// `sctp_rto_max`
    pub rto_max: Option<u32>,
    /// `sctp_rto_initial`
    pub rto_initial: Option<u32>,
    /// `sctp_sack_delay`
    pub sack_delay: Option<u32>,
    /// `sctp_sack_frequency`
    pub sack_frequency: Option<u32>,
    /// `sctp_max_burst_size`
    pub max_burst: Option<u32>,
    /// `sctp_max_fragment_size`
    pub max_fragment: Option<u32>,
    /// `sctp_hb_interval`
    pub heartbeat: Option<u32>,
    /// `sctp_path_mtu`
    pub path_mtu: Option<u32>,
    /// `sctp_in_streams`
    pub in_streams: Option<u16>,
    /// `sctp_out_streams`
    pub out_streams: Option<u16>,
    /// `sctp_nodelay`
    pub no_delay: bool,
    /// `encaps`: the UDP port of encapsulation (RFC 6951).
    pub encapsulation: Option<u16>,
}

/// What one SCTP message is told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SctpMessage {
    /// `sctp_stream_id`
    pub stream: Option<u16>,
    /// `sctp_unordered`
    pub unordered: bool,
    /// `sctp_pr_policy` with `sctp_pr_value`: when a message is given up (RFC 3758, RFC 7496).
    pub partial: Option<PartialReliability>,
}

/// When SCTP gives a message up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartialReliability {
    /// After so many milliseconds (`ttl`).
    Lifetime(u32),
    /// After so many retransmissions (`rtx`).
    Retransmissions(u32),
    /// When a message of higher priority, a lower number, needs the buffer (`buf`).
    Priority(u32),
    /// Never (`none`, or a policy that the kernel has not, as `rtt`).
    Never,
}
