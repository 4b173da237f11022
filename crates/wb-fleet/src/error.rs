//! Why there is no way to a host.

use std::path::PathBuf;
use std::time::Duration;

use wb_agent::{AgentSession, WorkerError};
use wb_model::{Bytes, WorkerName};

use crate::Host;
use crate::connect::{CONNECT_TIMEOUT, ConnectOptions, RESPONSE_TIMEOUT};
use crate::deploy::MIN_KERNEL;
use crate::inventory::Address;

/// Why there is no worker on a host.
#[derive(Debug, thiserror::Error)]
#[error("`{host}` ({address}) {kind}")]
pub struct FleetError {
    /// The host.
    pub host: WorkerName,
    /// Where it is.
    pub address: Address,
    /// The configuration of ssh by which it was tried, where it is not the user's own.
    pub ssh_config: Option<PathBuf>,
    /// Why.
    pub kind: Box<ConnectErrorKind>,
}

/// What is in the way.
#[derive(Debug, thiserror::Error)]
pub enum ConnectErrorKind {
    /// Nothing answers there, or something that refuses.
    #[error("cannot be reached: {said}")]
    Unreachable {
        /// What ssh said.
        said: String,
    },
    /// It has no address.
    #[error("has a name that nobody knows: {said}")]
    UnknownHostName {
        /// What ssh said.
        said: String,
    },
    /// It lets nobody in with the keys that there are.
    #[error("does not let you in: {said}")]
    AuthenticationFailed {
        /// What ssh said.
        said: String,
    },
    /// Nobody has yet said that its key is the right one.
    #[error("has a key that you have not accepted yet: {said}")]
    UnknownHostKey {
        /// What ssh said.
        said: String,
    },
    /// Its key is another than it was.
    #[error("has another key than before: it may be another machine that says it is this one: {said}")]
    HostKeyChanged {
        /// What ssh said.
        said: String,
        /// The file of known hosts that has the other key, where ssh named it.
        file: Option<String>,
    },
    /// Something else that ssh does not like.
    #[error("cannot be reached by ssh: {said}")]
    Ssh {
        /// What ssh said.
        said: String,
    },
    /// It lets us in, and its shell ends before it does anything.
    #[error("lets you in and runs no commands: {said}")]
    NoShell {
        /// What it, or ssh, said last.
        said: String,
    },
    /// There is no ssh here.
    #[error("cannot be reached: ssh cannot be started: {0}")]
    SshNotStarted(std::io::Error),
    /// It says nothing for too long.
    #[error("has not answered within {} s{}", .limit.as_secs(), message_suffix(.said))]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// What ssh said, if anything.
        said: String,
    },
    /// The program is for another kind of machine.
    #[error("is a machine of {theirs}, and this program is for {ours}")]
    Architecture {
        /// Its architecture.
        theirs: String,
        /// The program's.
        ours: &'static str,
    },
    /// Its kernel is too old.
    #[error("has Linux {theirs}, and {}.{} is the oldest that will do", MIN_KERNEL.0, MIN_KERNEL.1)]
    Kernel {
        /// Its release.
        theirs: String,
    },
    /// Its cache folder is on a filesystem that has no room for the program.
    #[error("has no room for the program: {needed} bytes are needed in {folder}, {free} are free")]
    NoSpace {
        /// The folder.
        folder: String,
        /// The size of the program.
        needed: Bytes,
        /// What is free.
        free: Bytes,
    },
    /// The program could not be stored there.
    #[error("cannot store the program in {folder}: {said}")]
    Store {
        /// The folder.
        folder: String,
        /// What the host said.
        said: String,
    },
    /// The program cannot be compressed here.
    #[error("cannot be given the program, which cannot be compressed: {0}")]
    Compress(std::io::Error),
    /// Root is needed, and cannot be had.
    #[error("gives no root rights to {user}: {said}")]
    NoSudo {
        /// As whom we are there.
        user: String,
        /// What sudo said.
        said: String,
    },
    /// Somebody else has it.
    #[error("is in use by {}", .0.as_ref().map_or("somebody else".to_owned(), AgentSession::to_string))]
    InUse(Option<AgentSession>),
    /// Another name of a host that this command is connected to already.
    #[error("is the machine that this command uses as `{other}` already")]
    SameHost {
        /// The other name.
        other: WorkerName,
    },
    /// Its agent does not start, or is none.
    #[error("has no agent: {0}")]
    Agent(#[source] WorkerError),
    /// The way to it is gone.
    #[error("is lost: {said}")]
    Lost {
        /// How it was noticed.
        said: String,
    },
}

fn message_suffix(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

impl FleetError {
    pub(crate) fn new(host: &Host, options: &ConnectOptions, why: ConnectErrorKind) -> Self {
        let (address, ssh_config) = (host.address.clone(), options.ssh_config.clone());
        Self { host: host.name.clone(), address, ssh_config, kind: Box::new(why) }
    }

    /// The way out, where there is one to be told.
    pub fn help(&self) -> Option<String> {
        let by_hand = self.ssh_command_line();
        let limit = CONNECT_TIMEOUT.as_secs();
        Some(match self.kind.as_ref() {
            ConnectErrorKind::Unreachable { .. } => format!("does `{by_hand}` work? it is tried for {limit} s"),
            ConnectErrorKind::UnknownHostName { .. } => {
                let config = self.ssh_config.as_ref().map(|file| file.display().to_string());
                let config = config.unwrap_or_else(|| "~/.ssh/config".to_owned());
                format!("see the inventory and {config} for how the host is written")
            }
            ConnectErrorKind::AuthenticationFailed { .. } => {
                format!(
                    "`{by_hand}` must work without a question: `ssh-copy-id` puts your key there, `ssh-add` unlocks it"
                )
            }
            ConnectErrorKind::UnknownHostKey { .. } => {
                format!(
                    "type `{by_hand}` once and compare the key that it shows, or see `ssh-keyscan {}`",
                    self.address.host
                )
            }
            ConnectErrorKind::HostKeyChanged { file, .. } => {
                let known_as = self.known_hosts_name();
                let mut words = vec!["ssh-keygen"];
                words.extend(file.iter().flat_map(|file| ["-f", file]));
                words.extend(["-R", &known_as]);
                let forget = shell_words::join(words);
                format!("if the machine was installed anew: `{forget}`, then `{by_hand}` once")
            }
            ConnectErrorKind::TimedOut { .. } => {
                format!(
                    "does `{by_hand} true` end by itself, without a question, within {} s?",
                    RESPONSE_TIMEOUT.as_secs()
                )
            }
            ConnectErrorKind::NoShell { .. } => {
                format!("the account's shell may refuse commands, as nologin does: does `{by_hand} true` work?")
            }
            ConnectErrorKind::Architecture { theirs, .. } => {
                format!("build weighbridge for {theirs} and start the run from there")
            }
            ConnectErrorKind::NoSpace { .. } => {
                "`weighbridge clean` removes other versions of the program; XDG_CACHE_HOME moves the cache".to_owned()
            }
            ConnectErrorKind::Agent(WorkerError::Lost { why, .. }) if why.contains("Permission denied") => {
                "may programs be executed where its cache is? on a file system that is mounted noexec they may not; \
                 XDG_CACHE_HOME, set there, moves the cache"
                    .to_owned()
            }
            ConnectErrorKind::Agent(WorkerError::Lost { why, .. }) if why.contains("No space left") => {
                "free some space in /var/lib and in the folder for temporary files there".to_owned()
            }
            ConnectErrorKind::NoSudo { .. } => {
                "connect as root, or let this user use sudo without a password".to_owned()
            }
            ConnectErrorKind::SameHost { other } => {
                let host = &self.host;
                format!("name each machine once: drop `{host}` or `{other}`; figures of both would be one machine's")
            }
            ConnectErrorKind::InUse(_) => "wait for it, or end it: its agent goes with it".to_owned(),
            _ => return None,
        })
    }

    /// What one types to get there the same way.
    fn ssh_command_line(&self) -> String {
        let config = self.ssh_config.iter().flat_map(|file| ["-F".to_owned(), file.display().to_string()]);
        shell_words::join(["ssh".to_owned()].into_iter().chain(config).chain(self.address.arguments()))
    }

    /// How the file of known hosts calls it.
    fn known_hosts_name(&self) -> String {
        match self.address.port {
            Some(port) if port != 22 => format!("[{}]:{port}", self.address.host),
            _ => self.address.host.clone(),
        }
    }
}
