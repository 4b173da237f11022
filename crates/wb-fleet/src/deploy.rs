//! Deploys the agent program to a host's cache and starts it.
//!
//! The program is stored once per content as `${XDG_CACHE_HOME:-~/.cache}/weighbridge/agent/SHA256/weighbridge` (mode
//! 0700): written to a temporary file, renamed, and checked against its hash before a start, unless it is unchanged
//! since the last one. It is used only if no other user can replace it in between: each level of its path belongs to
//! root or the user, and nobody else can write there. Only tools that every system has are used: a shell, `ls`, `head`,
//! `sha256sum`, `touch`, `df` and `awk`. If `gzip` exists, the transfer is compressed.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use wb_model::Bytes;

use crate::error::ConnectErrorKind;
use crate::limits::{MIN_KERNEL, RESPONSE_TIMEOUT};
use crate::program::Program;
use crate::progress::Transfer;
use crate::ssh::{Session, classify_failure, last_line};

/// Privileges of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privileges {
    Root,
    /// Root through sudo without a password.
    Sudo,
    User,
}

/// What a host is like, before anything is changed on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostProbe {
    pub(crate) kernel: String,
    pub(crate) user: String,
    pub(crate) rights: Privileges,
    pub(crate) folder: String,
    /// The same for all names of one machine; empty if it is not known.
    pub(crate) machine: String,
    architecture: String,
    sudo_message: String,
}

const SCRIPT: &str = include_str!("bootstrap.sh");
/// First line that the script prints; login scripts may have printed others before.
const GREETING: &str = "weighbridge-host 1";
const MAX_BANNER_LINES: usize = 1000;
/// Maximum length of a line of the script, in bytes.
const MAX_LINE_SIZE: u64 = 16 << 10;
/// Size of one write, in bytes.
const CHUNK: usize = 256 << 10;
/// How long a host may take to check and store the program, and the connection to accept the next part.
const STORE_TIMEOUT: Duration = Duration::from_secs(60);

impl Program {
    pub(crate) async fn probe(&self, session: &mut Session) -> Result<HostProbe, ConnectErrorKind> {
        let script = format!("sha256={}\n{SCRIPT}main\n", self.sha256());
        // If the write fails, ssh has exited, and its message is reported below.
        let _ = session.output.write_all(script.as_bytes()).await;
        let greeting = async {
            let mut last = String::new();
            for _ in 0..MAX_BANNER_LINES {
                match read_line(session).await {
                    Ok(line) if line == GREETING => return Ok(()),
                    Ok(line) if line.is_empty() => {}
                    Ok(line) => last = line,
                    // Shells that refuse commands report that on standard output.
                    Err(ConnectErrorKind::Lost { .. }) if !last.is_empty() => {
                        return Err(ConnectErrorKind::NoShell(last));
                    }
                    Err(ConnectErrorKind::Lost { .. }) => {
                        return Err(ConnectErrorKind::NoShell(last_line(&session.process.stderr())));
                    }
                    Err(other) => return Err(other),
                }
            }
            Err(ConnectErrorKind::Ssh(format!("its login scripts print more than {MAX_BANNER_LINES} lines")))
        };
        match timeout(RESPONSE_TIMEOUT, greeting).await {
            Ok(result) => result?,
            Err(_) => return Err(timeout_error(session, RESPONSE_TIMEOUT)),
        }
        let architecture = read_field(session, "architecture").await?;
        let kernel = read_field(session, "kernel").await?;
        let user = read_field(session, "user").await?;
        let rights = read_field(session, "rights").await?;
        let (rights, sudo_message) = match rights.split_once(' ').unwrap_or((&rights, "")) {
            ("root", _) => (Privileges::Root, String::new()),
            ("sudo", _) => (Privileges::Sudo, String::new()),
            (_, message) => (Privileges::User, message.to_owned()),
        };
        let machine = read_field(session, "machine").await?;
        let folder = read_field(session, "folder").await?;
        Ok(HostProbe { kernel, user, rights, folder, machine, architecture, sudo_message })
    }

    /// Starts the agent, after sending the program if the host does not have it; returns the transfer, if there was
    /// one.
    pub(crate) async fn start(
        &self,
        session: &mut Session,
        probe: &HostProbe,
        report: impl Fn(Transfer),
    ) -> Result<Option<Transfer>, ConnectErrorKind> {
        let _ = session.output.write_all(b"go\n").await;
        let response =
            timeout(STORE_TIMEOUT, read_line(session)).await.map_err(|_| timeout_error(session, STORE_TIMEOUT))??;
        let parameters = match response.split_once(' ').unwrap_or((&response, "")) {
            ("start", _) => return Ok(None),
            ("send", parameters) => parameters,
            _ => return Err(self.refusal(probe, None, &response)),
        };
        let mut words = parameters.split_whitespace();
        let takes_gzip = words.next_back() == Some("gzip");
        let free = words.next().and_then(|free| free.parse().ok()).map(|free: u64| Bytes(free.saturating_mul(1024)));
        if free.is_some_and(|free| free.0 < self.size()) {
            return Err(self.space_error(probe, free));
        }
        let sent = self.send(session, takes_gzip, report).await?;
        let response =
            timeout(STORE_TIMEOUT, read_line(session)).await.map_err(|_| timeout_error(session, STORE_TIMEOUT))??;
        match response.split_once(' ').unwrap_or((&response, "")) {
            ("start", _) => Ok(Some(sent)),
            _ => Err(self.refusal(probe, free, &response)),
        }
    }

    async fn send(
        &self,
        session: &mut Session,
        accepts_gzip: bool,
        report: impl Fn(Transfer),
    ) -> Result<Transfer, ConnectErrorKind> {
        if accepts_gzip {
            let program = self.clone();
            let compress = tokio::task::spawn_blocking(move || program.compressed().map(drop));
            compress
                .await
                .map_err(std::io::Error::other)
                .and_then(|result| result)
                .map_err(ConnectErrorKind::Compress)?;
        }
        let (encoding, bytes) = if accepts_gzip {
            ("gzip", self.compressed().map_err(ConnectErrorKind::Compress)?)
        } else {
            ("plain", self.uncompressed())
        };
        let mut transfer = Transfer { sent: 0, total: bytes.len() as u64, size: self.size() };
        report(transfer);
        // If the write fails, the host has refused and exited, and its message is read by the caller.
        if session.output.write_all(format!("{encoding} {}\n", transfer.total).as_bytes()).await.is_err() {
            return Ok(transfer);
        }
        for part in bytes.chunks(CHUNK) {
            let result = timeout(STORE_TIMEOUT, session.output.write_all(part)).await;
            if result.map_err(|_| timeout_error(session, STORE_TIMEOUT))?.is_err() {
                break;
            }
            transfer.sent += part.len() as u64;
            report(transfer);
        }
        Ok(transfer)
    }

    /// The error in the line with which the script ends.
    fn refusal(&self, probe: &HostProbe, free: Option<Bytes>, line: &str) -> ConnectErrorKind {
        let folder = probe.folder.clone();
        let (word, message) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "untrusted" => ConnectErrorKind::UntrustedCache { folder, reason: message.to_owned() },
            _ if message.contains("No space left") || message.contains("quota exceeded") => {
                self.space_error(probe, free)
            }
            _ => ConnectErrorKind::Store { folder, message: message.to_owned() },
        }
    }

    fn space_error(&self, probe: &HostProbe, free: Option<Bytes>) -> ConnectErrorKind {
        ConnectErrorKind::NoSpace {
            folder: probe.folder.clone(),
            required: Bytes(self.size()),
            free: free.unwrap_or_default(),
        }
    }
}

impl HostProbe {
    pub(crate) fn check_requirements(&self, needs_root: bool) -> Option<ConnectErrorKind> {
        if self.architecture != std::env::consts::ARCH {
            return Some(ConnectErrorKind::Architecture {
                host: self.architecture.clone(),
                program: std::env::consts::ARCH,
            });
        }
        let mut numbers =
            self.kernel.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
        let version = numbers.next().zip(numbers.next());
        if version.is_some_and(|version| version < MIN_KERNEL) {
            return Some(ConnectErrorKind::Kernel(self.kernel.clone()));
        }
        let lacks_root = needs_root && self.rights == Privileges::User;
        lacks_root.then(|| ConnectErrorKind::NoSudo { user: self.user.clone(), message: self.sudo_message.clone() })
    }
}

async fn read_field(session: &mut Session, name: &str) -> Result<String, ConnectErrorKind> {
    let line = timeout(RESPONSE_TIMEOUT, read_line(session)).await;
    let line = line.map_err(|_| timeout_error(session, RESPONSE_TIMEOUT))??;
    match line.strip_prefix(name) {
        Some(rest) => Ok(rest.trim().to_owned()),
        None => Err(ConnectErrorKind::Ssh(format!("unexpected output `{line}` of its shell, expected its {name}"))),
    }
}

fn timeout_error(session: &Session, limit: Duration) -> ConnectErrorKind {
    ConnectErrorKind::TimedOut { limit, message: session.process.stderr().trim().to_owned() }
}

async fn read_line(session: &mut Session) -> Result<String, ConnectErrorKind> {
    let mut bytes = Vec::new();
    let read = (&mut session.input).take(MAX_LINE_SIZE).read_until(b'\n', &mut bytes).await;
    if read.is_ok() && bytes.ends_with(b"\n") {
        return Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned());
    }
    let exit = session.process.wait().await;
    Err(match exit.status {
        Some(255) | None => classify_failure(&exit.stderr),
        Some(_) => ConnectErrorKind::Lost(format!("its shell exited: {}", last_line(&exit.stderr))),
    })
}
