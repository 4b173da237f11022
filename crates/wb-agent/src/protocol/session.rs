//! The handshake: what each side sends first. The controllers and runs that share a machine, and its clocks.

use std::fmt;

use serde::{Deserialize, Serialize};
use wb_model::Nanos;
use wb_sys::{SysRoot, users};

use super::{VERSION, own_program};

/// Configuration of an agent session. The default suits a local pipe, where each side notices the other's exit by the
/// end of the pipe.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionConfig {
    /// Controller that requests exclusive use of the machine; none if others may use it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<Controller>,
    /// Idle timeout of both sides: after this time without a byte from the other side, the agent kills its processes
    /// and exits, and the controller considers the worker lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Nanos>,
}

/// A program that drives agents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Controller {
    /// Its user and machine: `user@host`.
    pub user: String,
    /// Its process id on that machine.
    pub pid: u32,
}

impl Controller {
    /// Describes this process.
    pub fn current() -> Self {
        let id = rustix::process::getuid().as_raw();
        let user = std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| format!("user {id}"));
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { user: format!("{user}@{host}"), pid: std::process::id() }
    }
}

/// The session of a controller with its agent on a machine, which it uses exclusively or for a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AgentSession {
    pub controller: Controller,
    /// Process id of its agent on the machine.
    pub agent: u32,
    /// User on the machine whom the agent runs as; none if an earlier version has written this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Start of the use, by the machine's clock.
    pub since: jiff::Timestamp,
}

/// The run that an agent announced on its machine, and the other runs announced there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveRuns {
    pub own: AgentSession,
    /// Announcements of other agents. One of the same controller means that two of its workers are the same machine.
    pub others: Vec<AgentSession>,
}

impl AgentSession {
    /// Creates an entry for a controller whose agent is this process, starting now.
    pub(crate) fn new(controller: Controller) -> Self {
        let owner = users::name(&SysRoot::real(), rustix::process::geteuid().as_raw());
        Self { controller, agent: std::process::id(), owner: Some(owner), since: jiff::Timestamp::now() }
    }
}

impl fmt::Display for AgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller: Controller { user, pid }, agent, owner, since } = self;
        // The owner comes first: it is a fact, and the controller is what the agent says of it.
        match owner {
            Some(owner) => {
                write!(f, "user {owner} (agent {agent} here, for process {pid} of {user}) since {since:.0}")
            }
            None => write!(f, "{user} (process {pid} there, its agent {agent} here) since {since:.0}"),
        }
    }
}

/// First message of each side: protocol version, release and session configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The sender's [`VERSION`].
    pub protocol: u32,
    pub release: String,
    /// Path of the sender's program.
    pub program: String,
    /// Session configuration; only the controller's is used.
    #[serde(default)]
    pub config: SessionConfig,
}

impl Hello {
    /// The hello of this program with a session configuration.
    pub fn new(config: SessionConfig) -> Self {
        Self { protocol: VERSION, release: env!("CARGO_PKG_VERSION").to_owned(), program: own_program(), config }
    }
}

/// Reply of an agent to a controller's session configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HelloReply {
    Ready,
    /// Another controller uses the machine exclusively; which one, if known.
    InUse(Option<AgentSession>),
}

/// Clock readings of an agent for one clock-offset exchange, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// CLOCK_MONOTONIC when the request arrived.
    pub received_ns: u64,
    /// CLOCK_MONOTONIC when the reply was sent.
    pub replied_ns: u64,
    /// Wall clock when the reply was sent.
    pub wall_ns: u64,
}
