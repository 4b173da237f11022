//! Messages between the coordinator of a run and the engines that execute it.
//!
//! A site is a process that carries out strands: this one, a child of it, or a server. All are driven by the same
//! [`Order`]s and answer with the same [`Event`]s.

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, Serialize};

use super::{clock::Nanos, raw_log::LatencyRecord, report::EngineReport};
use crate::language::NetProfile;
use crate::transport::{address::HostAddress, link::Announcement};

/// Which side of the run a site is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// Carries out the profile as written.
    Client,
    /// Carries out its mirror image.
    Server,
}

/// What a site has to carry out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// As this side carries it out.
    pub profile: NetProfile,
    /// Which side that is.
    pub side: Side,
    /// Of each group, which strands.
    pub strands: Vec<Range<u32>>,
    /// By a host's name in the profile, where it is and where this machine is for it; on a server, the client under
    /// its own name.
    pub hosts: BTreeMap<String, HostAddresses>,
    /// From which sizes and files are drawn.
    pub seed: u64,
    /// How.
    pub settings: Settings,
}

/// The addresses of both hosts of a control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAddresses {
    /// Of this machine.
    pub local: HostAddress,
    /// Of the other.
    pub peer: HostAddress,
}

/// How strands are carried out and what is looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// CPUs that strands are pinned to, in turn; without, the kernel places them.
    pub cpus: Vec<usize>,
    /// With more strands than this in a process, they are carried out by events rather than by threads.
    pub max_threads: u32,
    /// Between two looks at what was done, in nanoseconds.
    pub progress_interval: Nanos,
    /// How long a client waits for a datagram before it counts as lost, in nanoseconds.
    pub datagram_timeout: Nanos,
    /// Whether the CPU time of flowops is asked of the kernel.
    pub flowop_cpu: bool,
    /// Hardware events that are counted over flowops.
    pub counters: Vec<String>,
    /// Whether every response time is kept.
    pub raw: bool,
    /// Whether nothing at all is recorded but totals.
    pub totals_only: bool,
    /// The ports on which a server may take connections.
    pub ports: Option<(u16, u16)>,
    /// The client cuts transactions after so long, in nanoseconds.
    pub max_duration: Option<Nanos>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cpus: Vec::new(),
            max_threads: 128,
            progress_interval: 1_000_000_000,
            datagram_timeout: 200_000_000,
            flowop_cpu: false,
            counters: Vec::new(),
            raw: false,
            totals_only: false,
            ports: None,
            max_duration: None,
        }
    }
}

/// A command to an engine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum EngineCommand {
    /// Make sockets, answered by [`Event::Prepared`].
    Prepare(Box<Assignment>),
    /// The other sides' addresses; answered by [`Event::Met`].
    SetPeers(Vec<LinkAnnouncement>),
    /// Carry out a transaction; each strand is answered for in [`Event::Ended`].
    Run {
        /// Which group's.
        group: usize,
        /// Which of its transactions.
        transaction: usize,
        /// It is cut after so many nanoseconds.
        limit: Option<Nanos>,
    },
    /// The other side is done with a transaction and will send no more than this.
    Finish {
        /// Which group's.
        group: usize,
        /// What the strands' connections moved.
        totals: Vec<StrandTotals>,
    },
    /// Take in what the other side sent; answered by [`Event::Settled`].
    Drain {
        /// Which group's.
        group: usize,
        /// What the strands' connections moved.
        totals: Vec<StrandTotals>,
    },
    /// Stop at once whatever is under way.
    Stop,
    /// Whoever coordinates is still there; a server answers with [`Event::Alive`].
    Heartbeat,
    /// Say what was measured, close everything and end; answered by [`Event::Report`].
    Report,
}

/// An event reported by an engine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum EngineEvent {
    /// Sockets are there.
    Prepared {
        /// What the other side has to know of them.
        links: Vec<LinkAnnouncement>,
        /// How the strands of this site are carried out.
        executor: ExecutorKind,
    },
    /// The other sides' addresses are known.
    Ready,
    /// Strands are done with a transaction.
    Ended {
        /// Which group's.
        group: usize,
        /// Which strands and what they moved.
        strands: Vec<StrandTotals>,
    },
    /// Strands have taken in what was sent to them.
    Drained {
        /// Which group's.
        group: usize,
        /// Which strands and what they have now.
        strands: Vec<StrandTotals>,
    },
    /// Whoever carries out the strands is still there; the answer to [`Order::Alive`].
    Heartbeat,
    /// What was done until now.
    Progress(EngineProgress),
    /// Response times, where each is kept.
    Raw(Vec<LatencyRecord>),
    /// What was measured.
    Report(Box<EngineReport>),
    /// A site cannot go on.
    Failed(EngineError),
}

/// What was done since the run began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineProgress {
    /// The site's monotonic clock.
    pub time: Nanos,
    /// Bytes sent in messages that were complete.
    pub sent: u64,
    /// Bytes received in messages that were complete.
    pub received: u64,
    /// Executions of flowops.
    pub operations: u64,
}

/// How strands are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ExecutorKind {
    /// A thread each, which blocks in the kernel.
    ThreadPerStrand,
    /// Many on few threads, which wait for events.
    EventLoop {
        /// How many threads.
        threads: u32,
    },
}

/// One side's addresses of a link, for one strand.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkAnnouncement {
    /// Where the link is in the profile.
    pub link: LinkId,
    /// Whose connection.
    pub strand: u32,
    /// Where.
    pub announcement: Announcement,
}

/// A connect or accept of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkId {
    /// Position of the group.
    pub group: usize,
    /// Position of the transaction in it.
    pub transaction: usize,
    /// Position of the flowop in that.
    pub flowop: usize,
}

/// What a strand's connections have moved since they were opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrandTotals {
    /// Which strand of the group.
    pub strand: u32,
    /// Its connections that are open.
    pub connections: Vec<ConnectionTotals>,
    /// How many it has opened altogether, by host (0 on a server).
    pub opened: Vec<u32>,
}

/// What one connection has moved since it was opened: bytes of a stream, or datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionTotals {
    /// With which host, by position among the client's hosts; 0 on a server.
    pub host: u32,
    /// Sequence number among the strand's connections to that host, from 1.
    pub ordinal: u32,
    /// Whether datagrams are counted, not bytes.
    pub datagrams: bool,
    /// Sent.
    pub sent: u64,
    /// Received.
    pub received: u64,
}

/// Why a strand or a site cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{}{message}", location.as_ref().map(|location| format!("{location}: ")).unwrap_or_default())]
pub struct EngineError {
    /// Which flowop, in words.
    pub location: Option<String>,
    /// What happened.
    pub message: String,
    /// Whether this machine cannot do it at all.
    pub unsupported: bool,
}

impl EngineError {
    /// Of no flowop in particular.
    pub fn new(what: impl Into<String>) -> Self {
        Self { location: None, message: what.into(), unsupported: false }
    }
}
