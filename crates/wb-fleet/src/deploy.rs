//! What is put on a host: this program, once per content.
//!
//! `${XDG_CACHE_HOME:-~/.cache}/weighbridge/agent/SHA256/weighbridge` (0700), written beside and renamed, and checked
//! against its hash each time before it is started. Only what every system has is used there: a shell, `head`,
//! `sha256sum`, `touch`, `df` and `awk`. Where there is `gzip`, it is sent compressed.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use wb_model::Bytes;

use crate::connect::{Privileges, RESPONSE_TIMEOUT};
use crate::error::ConnectErrorKind;
use crate::program::Program;
use crate::progress::Transfer;
use crate::ssh::{Session, classify_failure, last_line};

/// The oldest kernel that will do: of 2018, as in RHEL 8 and Debian 10.
pub(crate) const MIN_KERNEL: (u32, u32) = (4, 18);

/// What a host says of itself before anything is done there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostProbe {
    pub(crate) kernel: String,
    pub(crate) user: String,
    pub(crate) rights: Privileges,
    pub(crate) folder: String,
    architecture: String,
    sudo_message: String,
}

const SCRIPT: &str = include_str!("bootstrap.sh");
/// The first line that is the script's; login scripts may have said something before.
const GREETING: &str = "weighbridge-host 1";
/// What login scripts may say, in lines.
const MAX_BANNER_LINES: usize = 1000;
/// The longest line that the script says, in bytes.
const MAX_LINE_SIZE: u64 = 16 << 10;
/// What is sent at once, in bytes.
const CHUNK: usize = 256 << 10;
/// How long a host may take to check and store what was sent, and the way to take the next part.
const STORE_TIMEOUT: Duration = Duration::from_secs(60);

impl Program {
    /// Sends the script and hears what the host is.
    pub(crate) async fn probe(&self, session: &mut Session) -> Result<HostProbe, ConnectErrorKind> {
        let script = format!("sha256={}\n{SCRIPT}main\n", self.sha256());
        // Where it cannot be written, ssh has ended, and says why.
        let _ = session.output.write_all(script.as_bytes()).await;
        let look = async {
            let mut last = String::new();
            for _ in 0..MAX_BANNER_LINES {
                match read_line(session).await {
                    Ok(line) if line == GREETING => return Ok(()),
                    Ok(line) if line.is_empty() => {}
                    Ok(line) => last = line,
                    // Shells that refuse say so on standard output.
                    Err(ConnectErrorKind::Lost { .. }) if !last.is_empty() => {
                        return Err(ConnectErrorKind::NoShell { said: last });
                    }
                    Err(ConnectErrorKind::Lost { .. }) => {
                        return Err(ConnectErrorKind::NoShell { said: last_line(&session.end.stderr()) });
                    }
                    Err(other) => return Err(other),
                }
            }
            Err(ConnectErrorKind::Ssh { said: format!("its login scripts say more than {MAX_BANNER_LINES} lines") })
        };
        match timeout(RESPONSE_TIMEOUT, look).await {
            Ok(looked) => looked?,
            Err(_) => {
                return Err(ConnectErrorKind::TimedOut {
                    limit: RESPONSE_TIMEOUT,
                    said: session.end.stderr().trim().to_owned(),
                });
            }
        }
        let architecture = read_field(session, "architecture").await?;
        let kernel = read_field(session, "kernel").await?;
        let user = read_field(session, "user").await?;
        let rights = read_field(session, "rights").await?;
        let (rights, sudo_said) = match rights.split_once(' ').unwrap_or((&rights, "")) {
            ("root", _) => (Privileges::Root, String::new()),
            ("sudo", _) => (Privileges::Sudo, String::new()),
            (_, said) => (Privileges::User, said.to_owned()),
        };
        let folder = read_field(session, "folder").await?;
        Ok(HostProbe { kernel, user, rights, folder, architecture, sudo_message: sudo_said })
    }

    /// Has the host become the agent, after it got the program where it had it not; how much was sent, if it was.
    pub(crate) async fn start(
        &self,
        session: &mut Session,
        seen: &HostProbe,
        report: impl Fn(Transfer),
    ) -> Result<Option<Transfer>, ConnectErrorKind> {
        let _ = session.output.write_all(b"go\n").await;
        let answer = timeout(STORE_TIMEOUT, read_line(session)).await.map_err(|_| timeout_error(session))??;
        let offer = match answer.split_once(' ').unwrap_or((&answer, "")) {
            ("start", _) => return Ok(None),
            ("send", offer) => offer,
            (_, said) => return Err(self.store_error(seen, None, said)),
        };
        let mut words = offer.split_whitespace();
        let takes_gzip = words.next_back() == Some("gzip");
        let free = words.next().and_then(|free| free.parse().ok()).map(|free: u64| Bytes(free.saturating_mul(1024)));
        if free.is_some_and(|free| free.0 < self.size()) {
            return Err(self.space_error(seen, free));
        }
        let sent = self.send(session, takes_gzip, report).await?;
        let answer = timeout(STORE_TIMEOUT, read_line(session)).await.map_err(|_| timeout_error(session))??;
        match answer.split_once(' ').unwrap_or((&answer, "")) {
            ("start", _) => Ok(Some(sent)),
            (_, said) => Err(self.store_error(seen, free, said)),
        }
    }

    async fn send(
        &self,
        session: &mut Session,
        takes_gzip: bool,
        report: impl Fn(Transfer),
    ) -> Result<Transfer, ConnectErrorKind> {
        if takes_gzip {
            let program = self.clone();
            let compress = tokio::task::spawn_blocking(move || program.compressed().map(drop));
            compress.await.map_err(std::io::Error::other).and_then(|done| done).map_err(ConnectErrorKind::Compress)?;
        }
        let (form, bytes) = match takes_gzip {
            true => ("gzip", self.compressed().map_err(ConnectErrorKind::Compress)?),
            false => ("plain", self.uncompressed()),
        };
        let mut transfer = Transfer { sent: 0, total: bytes.len() as u64, size: self.size() };
        report(transfer);
        // Where nothing can be written a host has refused, ended and said why.
        if session.output.write_all(format!("{form} {}\n", transfer.total).as_bytes()).await.is_err() {
            return Ok(transfer);
        }
        for part in bytes.chunks(CHUNK) {
            let written = timeout(STORE_TIMEOUT, session.output.write_all(part)).await;
            if written.map_err(|_| timeout_error(session))?.is_err() {
                break;
            }
            transfer.sent += part.len() as u64;
            report(transfer);
        }
        Ok(transfer)
    }

    fn store_error(&self, seen: &HostProbe, free: Option<Bytes>, said: &str) -> ConnectErrorKind {
        match said.contains("No space left") || said.contains("quota exceeded") {
            true => self.space_error(seen, free),
            false => ConnectErrorKind::Store { folder: seen.folder.clone(), said: said.to_owned() },
        }
    }

    fn space_error(&self, seen: &HostProbe, free: Option<Bytes>) -> ConnectErrorKind {
        ConnectErrorKind::NoSpace {
            folder: seen.folder.clone(),
            needed: Bytes(self.size()),
            free: free.unwrap_or_default(),
        }
    }
}

impl HostProbe {
    /// What makes the host unfit.
    pub(crate) fn check_requirements(&self, needs_root: bool) -> Option<ConnectErrorKind> {
        if self.architecture != std::env::consts::ARCH {
            return Some(ConnectErrorKind::Architecture {
                theirs: self.architecture.clone(),
                ours: std::env::consts::ARCH,
            });
        }
        let mut numbers =
            self.kernel.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
        let version = numbers.next().zip(numbers.next());
        if version.is_some_and(|version| version < MIN_KERNEL) {
            return Some(ConnectErrorKind::Kernel { theirs: self.kernel.clone() });
        }
        let lacks_root = needs_root && self.rights == Privileges::User;
        lacks_root.then(|| ConnectErrorKind::NoSudo { user: self.user.clone(), said: self.sudo_message.clone() })
    }
}

/// What the host says under this name.
async fn read_field(session: &mut Session, name: &str) -> Result<String, ConnectErrorKind> {
    let line = timeout(RESPONSE_TIMEOUT, read_line(session)).await.map_err(|_| timeout_error(session))??;
    match line.strip_prefix(name) {
        Some(rest) => Ok(rest.trim().to_owned()),
        None => Err(ConnectErrorKind::Ssh { said: format!("its shell says `{line}` where its {name} was asked for") }),
    }
}

fn timeout_error(session: &Session) -> ConnectErrorKind {
    ConnectErrorKind::TimedOut { limit: STORE_TIMEOUT, said: session.end.stderr().trim().to_owned() }
}

/// The next line, or why there is none.
async fn read_line(session: &mut Session) -> Result<String, ConnectErrorKind> {
    let mut bytes = Vec::new();
    let read = (&mut session.input).take(MAX_LINE_SIZE).read_until(b'\n', &mut bytes).await;
    if read.is_ok() && bytes.ends_with(b"\n") {
        return Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned());
    }
    let gone = session.end.wait().await;
    Err(match gone.status {
        Some(255) | None => classify_failure(&gone.said),
        Some(_) => ConnectErrorKind::Lost { said: format!("its shell ended: {}", last_line(&gone.said)) },
    })
}
