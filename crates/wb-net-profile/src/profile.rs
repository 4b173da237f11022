//! The data types of a profile: groups of strands, which execute transactions made of flowops.
//!
//! The terms are uperf's. A strand is a thread or a process; a flowop is one operation on a connection.
//!
//! What the engine calls in its loops is `#[inline]`: it is compiled with optimisation there, and without it here.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A workload: groups that run concurrently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetProfile {
    /// Without influence on what the profile does.
    pub name: String,
    /// At least one.
    pub groups: Vec<Group>,
}

impl NetProfile {
    pub fn flowops(&self) -> impl Iterator<Item = &Flowop> {
        self.groups.iter().flat_map(Group::flowops)
    }
}

/// Strands that all execute the same transactions in sequence, and start each together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The given name, or `Group0`, `Group1`, … by position.
    pub name: String,
    /// At least one.
    pub strands: u32,
    pub kind: StrandKind,
    /// At least one.
    pub transactions: Vec<Transaction>,
}

impl Group {
    pub fn flowops(&self) -> impl Iterator<Item = &Flowop> {
        self.transactions.iter().flat_map(|transaction| &transaction.flowops)
    }

    /// The transactions of the data phase, by position: those that move data, or all if none does; without warm-ups.
    pub fn data_phase(&self) -> impl Iterator<Item = usize> {
        let any = self.transactions.iter().any(Transaction::moves_data);
        let transactions = self.transactions.iter().enumerate();
        let is_data = move |transaction: &Transaction| !transaction.warm_up && (!any || transaction.moves_data());
        transactions.filter(move |(_, transaction)| is_data(transaction)).map(|(position, _)| position)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StrandKind {
    /// A thread (`nthreads`).
    Thread,
    /// A process of its own (`nprocs`).
    Process,
}

/// A sequence of flowops, repeated as long as its extent specifies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    /// `Txn0`, `Txn1`, … by position in its group.
    pub name: String,
    pub extent: Extent,
    /// Rounds per second and strand, started by the clock whether or not the last has ended (an open loop).
    pub rate: Option<f64>,
    /// Whether it only prepares what follows, such as the congestion window: its figures belong to no total.
    #[serde(default)]
    pub warm_up: bool,
    /// At least one.
    pub flowops: Vec<Flowop>,
}

impl Transaction {
    #[inline]
    pub fn moves_data(&self) -> bool {
        self.flowops.iter().any(|flowop| flowop.action.moves_data())
    }
}

/// The length of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Extent {
    /// A number of rounds per strand; may be 0.
    Iterations(u64),
    /// A time window, the same for all strands of the group.
    Window(Duration),
}

/// One operation, executed `count` × `repeat` times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flowop {
    /// Its type as written in reports: `connect`, `write`, `recvfrom`, …
    pub name: String,
    pub action: FlowopAction,
    /// The name of the connection (`conn`); `None` for the first one without a name.
    pub connection: Option<u32>,
    /// Consecutive executions; at least 1.
    pub count: u64,
    /// Repetitions of the `count` executions; at least 1.
    pub repeat: u64,
    /// Messages per system call: 1 by default, at most [`MAX_BATCH`]. Each datagram is received alone: any may be lost.
    pub batch: u32,
    /// Executions per second and strand, as an open loop.
    pub rate: Option<f64>,
    /// Time limit that replaces `count`: executions are repeated until then.
    pub duration: Option<Duration>,
    /// Whether its failures are counted and ignored (`canfail`).
    pub can_fail: bool,
}

/// Maximum number of messages per system call (UIO_MAXIOV).
pub const MAX_BATCH: u32 = 1024;

impl Flowop {
    /// A flowop that executes its action once, on the first connection without a name.
    pub fn new(name: impl Into<String>, action: FlowopAction) -> Self {
        Self {
            name: name.into(),
            action,
            connection: None,
            count: 1,
            repeat: 1,
            batch: 1,
            rate: None,
            duration: None,
            can_fail: false,
        }
    }

    /// Messages per system call: more than one only if all have the same size and nothing can end them early.
    #[inline]
    pub fn batch(&self) -> u64 {
        let (FlowopAction::Send(message) | FlowopAction::Receive(message)) = &self.action else { return 1 };
        let simple = matches!(message.size, MessageSize::Fixed(_)) && self.rate.is_none() && self.duration.is_none();
        if simple { u64::from(self.batch.clamp(1, MAX_BATCH)) } else { 1 }
    }

    #[inline]
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match &self.action {
            FlowopAction::Connect(endpoint) | FlowopAction::Accept(endpoint) => Some(endpoint),
            _ => None,
        }
    }

    /// Executions in a round that nothing ends early.
    #[inline]
    pub fn executions(&self) -> u64 {
        self.count.saturating_mul(self.repeat)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FlowopAction {
    Connect(Box<Endpoint>),
    Accept(Box<Endpoint>),
    Disconnect,
    Send(Message),
    Receive(Message),
    SendFiles(Files),
    /// Receives what the other side sends as files. Occurs only in a mirrored profile.
    ReceiveFiles(FileSizes),
    Think {
        duration: Duration,
        /// Whether the CPU is kept busy meanwhile.
        busy: bool,
    },
    Nop,
    /// Concerns another host than this one. Occurs only in a mirrored profile, to preserve positions.
    Skip,
}

impl FlowopAction {
    #[inline]
    pub fn moves_data(&self) -> bool {
        matches!(self, Self::Send(_) | Self::Receive(_) | Self::SendFiles(_) | Self::ReceiveFiles(_))
    }
}

/// The remote end of a connection, and the options of its socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The other side, as written: a name, an address, or a context ID for vsock.
    pub remote: String,
    /// Local address to bind to (`localhost`).
    pub local: Option<String>,
    pub protocol: Protocol,
    /// A fixed port of the accepting side; otherwise a free one is chosen and announced.
    pub port: Option<u16>,
    /// Send and receive buffer of the socket in bytes (`wndsz`); `None` for the kernel's automatic tuning.
    pub window: Option<u32>,
    /// Sends small messages immediately (`tcp_nodelay`).
    pub no_delay: bool,
    /// TCP congestion control algorithm (`cc`).
    pub congestion: Option<String>,
    /// Maximum segment size of TCP in bytes (`mss`).
    #[serde(default)]
    pub mss: Option<u32>,
    /// Type of service of IPv4, or traffic class of IPv6 (`tos`).
    #[serde(default)]
    pub tos: Option<u8>,
    /// Sends and receives several datagrams of UDP with one system call, which the kernel segments and joins (`gso`).
    #[serde(default)]
    pub gso: bool,
    /// Port of the connecting side's first strand; further strands have those that follow.
    #[serde(default)]
    pub local_port: Option<u16>,
    /// Bytes per second at which the kernel paces what is sent (SO_MAX_PACING_RATE).
    #[serde(default)]
    pub pacing: Option<u64>,
    /// Time after which sent data of TCP that is not acknowledged breaks the connection (TCP_USER_TIMEOUT).
    #[serde(default)]
    pub user_timeout: Option<Duration>,
    #[serde(default)]
    pub dont_fragment: bool,
    /// Polls instead of blocking in system calls (`non_blocking`).
    pub non_blocking: bool,
    /// Time limit for the connection (`timeout`).
    pub timeout: Option<Duration>,
    /// Uses kernel TLS for records (`engine=ktls`).
    #[serde(default)]
    pub kernel_tls: bool,
    pub sctp: SctpEndpoint,
}

impl Endpoint {
    pub fn new(remote: impl Into<String>, protocol: Protocol) -> Self {
        Self {
            remote: remote.into(),
            local: None,
            protocol,
            port: None,
            window: None,
            no_delay: false,
            congestion: None,
            mss: None,
            tos: None,
            gso: false,
            local_port: None,
            pacing: None,
            user_timeout: None,
            dont_fragment: false,
            non_blocking: false,
            timeout: None,
            kernel_tls: false,
            sctp: SctpEndpoint::default(),
        }
    }
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
    pub const ALL: [Self; 9] =
        [Self::Tcp, Self::Udp, Self::Tls, Self::Sctp, Self::Unix, Self::UnixDgram, Self::Vsock, Self::Quic, Self::Rds];

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

    /// Whether messages are datagrams, which arrive completely or not at all.
    #[inline]
    pub fn is_datagram(self) -> bool {
        matches!(self, Self::Udp | Self::UnixDgram | Self::Rds)
    }
}

/// A message to send or to receive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub size: MessageSize,
    /// The size in bytes of the other side's reads or writes (`rsize`), if different.
    pub remote_size: Option<u32>,
    pub call: SyscallFamily,
    /// `timeout` or `poll_timeout`.
    pub timeout: Option<Duration>,
    pub non_blocking: bool,
    pub sctp: SctpMessage,
}

impl Message {
    pub const fn new(size: MessageSize, call: SyscallFamily) -> Self {
        let sctp = SctpMessage { stream: None, unordered: false, partial: None };
        Self { size, remote_size: None, call, timeout: None, non_blocking: false, sctp }
    }
}

/// The size of a message in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageSize {
    /// Constant; at least 1.
    Fixed(u32),
    /// Uniformly distributed between `min` and `max`, inclusive; `min` is at least 1 and at most `max`.
    Random { min: u32, max: u32 },
}

impl MessageSize {
    #[inline]
    pub fn max(self) -> u32 {
        match self {
            Self::Fixed(size) => size,
            Self::Random { max, .. } => max,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SyscallFamily {
    ReadWrite,
    SendRecv,
    SendToRecvFrom,
    /// `readv` and `writev`.
    Vectored,
}

/// Files to send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// The folder that contains them, at any depth.
    pub dir: String,
    /// Per execution; at least 1.
    pub count: u32,
    /// Bytes per system call; `None` for a whole file.
    pub chunk: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileSizes {
    /// Sizes in bytes, in the sender's order.
    pub sizes: Vec<u64>,
    /// Per execution; at least 1.
    pub count: u32,
}

/// Options of an SCTP association (RFC 4960, RFC 6458); times in milliseconds. `sctp_rto_min` in a profile is `rto_min`
/// here; other names are noted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SctpEndpoint {
    pub rto_min: Option<u32>,
    pub rto_max: Option<u32>,
    pub rto_initial: Option<u32>,
    pub sack_delay: Option<u32>,
    pub sack_frequency: Option<u32>,
    /// `sctp_max_burst_size`
    pub max_burst: Option<u32>,
    /// `sctp_max_fragment_size`
    pub max_fragment: Option<u32>,
    /// `sctp_hb_interval`
    pub heartbeat: Option<u32>,
    pub path_mtu: Option<u32>,
    pub in_streams: Option<u16>,
    pub out_streams: Option<u16>,
    /// `sctp_nodelay`
    pub no_delay: bool,
    /// `encaps`: UDP port for encapsulation (RFC 6951).
    pub encapsulation: Option<u16>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SctpMessage {
    /// `sctp_stream_id`
    pub stream: Option<u16>,
    pub unordered: bool,
    /// `sctp_pr_policy` with `sctp_pr_value`: when a message is abandoned (RFC 3758, RFC 7496).
    pub partial: Option<PartialReliability>,
}

/// When SCTP abandons a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartialReliability {
    /// After this many milliseconds (`ttl`).
    Lifetime(u32),
    /// After this many retransmissions (`rtx`).
    Retransmissions(u32),
    /// When a message of higher priority, that is a lower number, needs the buffer (`buf`).
    Priority(u32),
    /// Never (`none`, or a policy that the kernel does not support, such as `rtt`).
    Never,
}
