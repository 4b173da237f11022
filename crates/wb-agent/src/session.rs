//! On which terms an agent serves: what a controller says in its hello, and what the agent answers.

use std::fmt;

use serde::{Deserialize, Serialize};
use wb_model::Nanos;

/// What a controller asks of an agent beyond the protocol. On a pipe of this machine nothing is needed: the end of the
/// pipe tells each side all about the other.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionConfig {
    /// Who wants the machine alone; nobody where others may use it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<Controller>,
    /// After which time without a byte from the other side each gives it up: the agent ends all that it started and
    /// itself, the controller takes the worker for lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Nanos>,
}

/// A program that drives agents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Controller {
    /// Whose it is, and on which machine: `user@host`.
    pub user: String,
    /// Its process there.
    pub pid: u32,
}

impl Controller {
    /// This process.
    pub fn current() -> Self {
        let id = rustix::process::getuid().as_raw();
        let user = std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| format!("user {id}"));
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { user: format!("{user}@{host}"), pid: std::process::id() }
    }
}

/// Who has a machine to itself, or measures on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AgentSession {
    /// The controller.
    pub controller: Controller,
    /// Its agent's process, on the machine.
    pub agent: u32,
    /// Since when, by the machine's clock.
    pub since: jiff::Timestamp,
}

/// A run that an agent has announced on its machine, and those that it found announced there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveRuns {
    /// The announcement.
    pub own: AgentSession,
    /// Those of other agents, also of the same controller: such an agent is on the same machine.
    pub others: Vec<AgentSession>,
}

impl AgentSession {
    /// A controller whose agent is this process, from now on.
    pub(crate) fn new(controller: Controller) -> Self {
        Self { controller, agent: std::process::id(), since: jiff::Timestamp::now() }
    }
}

impl fmt::Display for AgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller: Controller { user, pid }, agent, since } = self;
        write!(f, "{user} (process {pid} there, its agent {agent} here) since {since:.0}")
    }
}

/// What an agent says to a controller's terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HelloReply {
    /// It serves.
    Ready,
    /// It does not: somebody else has the machine. Who, where that can be told.
    InUse(Option<AgentSession>),
}
