//! Messages between the coordinator of a run and the engines that execute it.
//!
//! An engine is a process that executes strands: this process, a child of it, or a server. All are driven by the same
//! [`EngineCommand`]s and respond with the same [`EngineEvent`]s.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::clock::Nanos;
use super::raw_log::LatencyRecord;
use super::report::EngineReport;
use wb_results::net::StrandProgress;

pub use super::report::{EngineProgress, ExecutorKind, Side};
use crate::transport::address::HostAddress;
use crate::transport::cookie::SessionKey;
use crate::transport::data_ports::PortPolicy;
use crate::transport::is_unsupported;
use crate::transport::link::Announcement;
use wb_net_profile::NetProfile;

/// The part of a run that one engine executes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// The profile from the point of view of this side.
    pub profile: NetProfile,
    pub side: Side,
    /// One range for each group.
    pub strands: Vec<Range<u32>>,
    /// The other hosts, by their names in the profile; on a server, the client alone.
    pub hosts: BTreeMap<String, HostSession>,
    /// The seed for random sizes and the choice of files.
    pub seed: u64,
    pub settings: Settings,
}

/// The session with another host: both ends of its control connection, and the key by which data connections prove that
/// they belong to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSession {
    pub local: HostAddress,
    pub peer: HostAddress,
    pub key: SessionKey,
}

/// How strands are executed, and what is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// CPUs that strands are pinned to, round-robin; if empty, the kernel places them.
    pub cpus: Vec<usize>,
    /// With more strands than this in a process, event loops execute them instead of a thread each.
    pub max_threads: u32,
    pub progress_interval: Nanos,
    /// How long a client waits for a datagram before it counts as lost.
    pub datagram_timeout: Nanos,
    pub flowop_cpu: bool,
    /// Performance events to count over flowops.
    pub counters: Vec<String>,
    /// Whether every response time is recorded individually.
    pub raw: bool,
    pub totals_only: bool,
    /// Whether the progress of every strand is reported, which needs a thread for each.
    pub strand_progress: bool,
    /// Whether messages consist of repeated digits, which can be compressed, instead of pseudo-random bytes.
    pub repeating_payload: bool,
    /// The ports on which a server may listen.
    pub ports: PortPolicy,
    /// Time after which the client ends a transaction.
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
            strand_progress: false,
            repeating_payload: false,
            ports: PortPolicy::Any,
            max_duration: None,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum EngineCommand {
    /// Create sockets; answered by [`EngineEvent::Prepared`].
    Prepare(Box<Assignment>),
    /// Set up the links to the accepting sides that have been announced; answered by [`EngineEvent::Ready`].
    SetPeers(Vec<LinkAnnouncement>),
    /// Execute a transaction; answered by [`EngineEvent::Ended`] for each strand.
    Run { group: usize, transaction: usize, limit: Option<Nanos> },
    /// The other side has finished a transaction; these are its final totals.
    Finish { group: usize, totals: Vec<StrandTotals> },
    /// Receive what is still in flight; answered by [`EngineEvent::Drained`].
    Drain { group: usize, totals: Vec<StrandTotals> },
    /// Abort all transactions.
    Stop,
    /// Heartbeat of the coordinator; a server answers with [`EngineEvent::Heartbeat`].
    Heartbeat,
    /// Report the metrics, close all connections and end; answered by [`EngineEvent::Report`].
    Report,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum EngineEvent {
    Prepared {
        /// Of the links that this side accepts.
        links: Vec<LinkAnnouncement>,
        executor: ExecutorKind,
    },
    /// The links are set up, and all executors run.
    Ready,
    Ended {
        group: usize,
        /// Of the whole engine until then.
        progress: EngineProgress,
        strands: Vec<StrandTotals>,
    },
    Drained {
        group: usize,
        strands: Vec<StrandTotals>,
    },
    /// Heartbeat of the engine; the answer to [`EngineCommand::Heartbeat`].
    Heartbeat,
    /// Totals so far.
    Progress(EngineProgress),
    /// The same by strand, if [`Settings::strand_progress`] is set: while a transaction moves data, and at its start
    /// and end.
    StrandProgress(Vec<StrandProgress>),
    Raw(Vec<LatencyRecord>),
    Report(Box<EngineReport>),
    Failed(EngineError),
}

/// The accepting side's address of a link, for one strand.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkAnnouncement {
    pub link: LinkId,
    pub strand: u32,
    pub announcement: Announcement,
}

/// The position of a connect or accept in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkId {
    pub group: usize,
    pub transaction: usize,
    pub flowop: usize,
}

/// Totals of a strand's connections since they were opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrandTotals {
    pub strand: u32,
    pub connections: Vec<ConnectionTotals>,
    /// Number of connections opened so far, by host (index 0 on a server).
    pub opened: Vec<u32>,
}

/// Bytes of a stream, or datagrams, of a connection since its opening; encoded as a list: a strand may have thousands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, bool, u64, u64)", into = "(u32, u32, bool, u64, u64)")]
pub struct ConnectionTotals {
    /// Index of the other host among the client's hosts; 0 on a server.
    pub host: u32,
    /// Sequence number among the strand's connections to that host, from 1.
    pub ordinal: u32,
    /// Whether `sent` and `received` count datagrams instead of bytes.
    pub datagrams: bool,
    pub sent: u64,
    pub received: u64,
}

impl From<(u32, u32, bool, u64, u64)> for ConnectionTotals {
    fn from((host, ordinal, datagrams, sent, received): (u32, u32, bool, u64, u64)) -> Self {
        Self { host, ordinal, datagrams, sent, received }
    }
}

impl From<ConnectionTotals> for (u32, u32, bool, u64, u64) {
    fn from(totals: ConnectionTotals) -> Self {
        (totals.host, totals.ordinal, totals.datagrams, totals.sent, totals.received)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{}{message}", location.as_ref().map(|location| format!("{location}: ")).unwrap_or_default())]
pub struct EngineError {
    /// Group, transaction and name of the flowop that failed.
    pub location: Option<String>,
    pub message: String,
    pub kind: EngineErrorKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EngineErrorKind {
    Failed,
    /// This machine does not support the operation at all.
    Unsupported,
    /// The server has no place for another session.
    Busy,
}

impl EngineErrorKind {
    pub fn new(error: &io::Error) -> Self {
        if is_unsupported(error) { Self::Unsupported } else { Self::Failed }
    }
}

impl EngineError {
    /// An error that concerns no particular flowop.
    pub fn new(message: impl Into<String>) -> Self {
        Self { location: None, message: message.into(), kind: EngineErrorKind::Failed }
    }
}
