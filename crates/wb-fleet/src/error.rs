use std::path::PathBuf;
use std::time::Duration;

use wb_agent::{AgentSession, WorkerError};
use wb_model::{Bytes, WorkerName};

use crate::inventory::Address;
use crate::limits::{CONNECT_TIMEOUT, MIN_KERNEL, RESPONSE_TIMEOUT};

/// Help for hosts that were taken for one machine and are several.
pub const SEPARATE_HOSTS: &str = "hosts that share a kernel on purpose, in namespaces or containers, need folders of \
    their own: /var/lib/weighbridge, where an agent keeps what it will revert, and WEIGHBRIDGE_LOCKS, such as `SetEnv \
    WEIGHBRIDGE_LOCKS=FOLDER` in each sshd_config";

#[derive(Debug, thiserror::Error)]
#[error("`{host}` ({address}) {kind}")]
pub struct FleetError {
    pub host: WorkerName,
    pub address: Address,
    pub ssh_config: Option<PathBuf>,
    pub kind: Box<ConnectErrorKind>,
}

/// Cause of a failed connection; a text is the message of ssh or of the host, unless it is described.
#[derive(Debug, thiserror::Error)]
pub enum ConnectErrorKind {
    /// The host does not respond, or refuses the connection.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    #[error("has an unknown host name: {0}")]
    UnknownHostName(String),
    #[error("refused your authentication: {0}")]
    AuthenticationFailed(String),
    #[error("has an unknown host key: {0}")]
    UnknownHostKey(String),
    #[error("has a changed host key and may be another machine: {message}")]
    HostKeyChanged {
        message: String,
        /// The known hosts file with the old key, if ssh named it.
        file: Option<String>,
    },
    /// Any other failure of ssh.
    #[error("cannot be reached over ssh: {0}")]
    Ssh(String),
    #[error("accepts your login but runs no commands: {0}")]
    NoShell(String),
    #[error("cannot be reached: cannot start ssh: {0}")]
    SshNotStarted(std::io::Error),
    #[error("did not respond within {} s{}", .limit.as_secs(), message_suffix(.message))]
    TimedOut {
        limit: Duration,
        /// Message of ssh; may be empty.
        message: String,
    },
    #[error("has architecture {host}, but this program is built for {program}")]
    Architecture { host: String, program: &'static str },
    /// Its kernel is too old, with its release.
    #[error("runs Linux {}, expected {}.{} or newer", .0, MIN_KERNEL.0, MIN_KERNEL.1)]
    Kernel(String),
    #[error("has not enough space for the program in {folder}: {} required, {free} free", Bytes(required.0.div_ceil(1 << 20) << 20))]
    NoSpace { folder: String, required: Bytes, free: Bytes },
    #[error("cannot store the program in {folder}: {message}")]
    Store { folder: String, message: String },
    #[error("would start the program where another user can replace it, in {folder}: {reason}")]
    UntrustedCache {
        folder: String,
        /// The level of its path that another user controls, and why.
        reason: String,
    },
    #[error("cannot receive the program: cannot compress it: {0}")]
    Compress(std::io::Error),
    #[error("grants no root privileges to {user}: {message}")]
    NoSudo {
        /// The user on the host.
        user: String,
        message: String,
    },
    #[error("is in use by {}", .0.as_ref().map_or("another controller".to_owned(), AgentSession::to_string))]
    InUse(Option<AgentSession>),
    /// This process is already connected to the same machine, under this name.
    #[error("is the same machine as `{0}`")]
    SameHost(WorkerName),
    /// Its agent does not start, or the handshake fails.
    #[error("cannot start the agent: {0}")]
    Agent(#[source] WorkerError),
    #[error("is lost: {0}")]
    Lost(String),
}

const MOVE_CACHE: &str =
    "XDG_CACHE_HOME on the host moves the cache, to a folder that only its user and root can change";

fn message_suffix(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

impl FleetError {
    pub fn help(&self) -> Option<String> {
        let command = self.ssh_command_line();
        let limit = CONNECT_TIMEOUT.as_secs();
        Some(match self.kind.as_ref() {
            ConnectErrorKind::Unreachable { .. } => {
                format!("check that `{command}` works; connecting times out after {limit} s")
            }
            ConnectErrorKind::UnknownHostName { .. } => {
                let config = self.ssh_config.as_ref().map(|file| file.display().to_string());
                let config = config.unwrap_or_else(|| "~/.ssh/config".to_owned());
                format!("check the spelling of the host in the inventory and in {config}")
            }
            ConnectErrorKind::AuthenticationFailed { .. } => {
                format!(
                    "`{command}` must work without a prompt: `ssh-copy-id` installs your key there, `ssh-add` unlocks it"
                )
            }
            ConnectErrorKind::UnknownHostKey { .. } => {
                format!(
                    "run `{command}` once and compare the key that it shows, or see `ssh-keyscan {}`",
                    self.address.host
                )
            }
            ConnectErrorKind::HostKeyChanged { file, .. } => {
                let name = self.known_hosts_name();
                let mut words = vec!["ssh-keygen"];
                words.extend(file.iter().flat_map(|file| ["-f", file]));
                words.extend(["-R", &name]);
                let forget = shell_words::join(words);
                format!("if the machine was reinstalled, run `{forget}`, then `{command}` once")
            }
            ConnectErrorKind::TimedOut { .. } => {
                format!("check that `{command} true` finishes without a prompt within {} s", RESPONSE_TIMEOUT.as_secs())
            }
            ConnectErrorKind::NoShell { .. } => {
                format!("the account's shell may refuse commands, as nologin does: check that `{command} true` works")
            }
            ConnectErrorKind::Architecture { host: release, .. } => {
                format!("build weighbridge for {release} and start the run from there")
            }
            ConnectErrorKind::NoSpace { .. } => {
                format!("`weighbridge clean` removes other versions of the program; {MOVE_CACHE}")
            }
            ConnectErrorKind::UntrustedCache { .. } => {
                format!(
                    "give that path to the user or to root (`chown`) and to nobody else (`chmod go-w`); {MOVE_CACHE}"
                )
            }
            ConnectErrorKind::Agent(WorkerError::Lost { reason, .. }) if reason.contains("Permission denied") => {
                format!("check that its cache is not on a file system mounted noexec; {MOVE_CACHE}")
            }
            ConnectErrorKind::Agent(WorkerError::Lost { reason, .. }) if reason.contains("No space left") => {
                "free some space in /var/lib and in the folder for temporary files on that host".to_owned()
            }
            ConnectErrorKind::NoSudo { .. } => {
                "connect as root, or allow this user to use sudo without a password".to_owned()
            }
            ConnectErrorKind::SameHost(other) => {
                let host = &self.host;
                format!(
                    "name each machine once: drop `{host}` or `{other}`, otherwise one machine is measured under both names; \
                     {SEPARATE_HOSTS}"
                )
            }
            ConnectErrorKind::InUse(_) => "wait for it to finish, or stop it: its agent exits with it".to_owned(),
            _ => return None,
        })
    }

    /// Returns the command line that connects to the host in the same way.
    fn ssh_command_line(&self) -> String {
        let config = self.ssh_config.iter().flat_map(|file| ["-F".to_owned(), file.display().to_string()]);
        shell_words::join(["ssh".to_owned()].into_iter().chain(config).chain(self.address.arguments()))
    }

    fn known_hosts_name(&self) -> String {
        match self.address.port {
            Some(port) if port != 22 => format!("[{}]:{port}", self.address.host),
            _ => self.address.host.clone(),
        }
    }
}
