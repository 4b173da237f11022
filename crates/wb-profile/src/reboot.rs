//! A machine that reboots: asked to, waited for, and seen to be in another boot than before.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use wb_agent::{Command, Worker, WorkerError};
use wb_fleet::{ConnectErrorKind, ConnectOptions, ConnectedHost, FleetError, Host, Program, connect};
use wb_model::{Nanos, WorkerName};

use crate::boot::{Boot, CommandLine};
use crate::controller::last_lines;

/// How long the command that asks for it may take.
const COMMAND_TIMEOUT: Nanos = Nanos(60_000_000_000);
/// How often it is looked whether the machine is still there.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The pause before the first try to reach it again, and the longest between two.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// Why a machine is not in another boot.
#[derive(Debug, thiserror::Error)]
pub enum RebootError {
    /// It does not do it.
    #[error("`{host}` does not reboot: {why}")]
    Refused {
        /// Which.
        host: WorkerName,
        /// What it says.
        why: String,
        /// What it was asked to start.
        next: Boot,
    },
    /// It was asked to, and is where it was.
    #[error("`{host}` was asked to reboot and is still in the same boot after {limit}")]
    SameBoot {
        /// Which.
        host: WorkerName,
        /// How long it was given.
        limit: Nanos,
    },
    /// It went away and stayed away.
    #[error("`{host}` did not come back from its reboot within {limit}: {last}")]
    TimedOut {
        /// Which.
        host: WorkerName,
        /// How long it was given.
        limit: Nanos,
        /// Why it could not be reached the last time.
        last: String,
    },
    /// It came back, and its kernel was started otherwise than it was asked to be.
    #[error("`{host}` is back from its reboot, and its kernel was started {}", describe_arguments(.added))]
    WrongArguments {
        /// Which.
        host: WorkerName,
        /// The arguments of ours that it has.
        added: Vec<String>,
    },
    /// It came back as something that it was not.
    #[error("after its reboot {0}")]
    Connect(FleetError),
    /// It was lost before it was asked.
    #[error(transparent)]
    Worker(#[from] WorkerError),
}

impl RebootError {
    /// The way out, where there is one to be told.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::SameBoot { .. } | Self::TimedOut { .. } => {
                Some("--reboot-limit gives it more time; its console says what it waits for".to_owned())
            }
            Self::Refused { next: Boot::Default, .. } => {
                Some("`systemctl reboot` or `reboot` must work there, as root".to_owned())
            }
            Self::Refused { next: Boot::Kexec(_), .. } => {
                Some("kernel arguments take kexec there, as root; docs/profiles.md says what else does it".to_owned())
            }
            Self::WrongArguments { .. } => Some(
                "a service there that loads a kernel for every reboot stands in the way (Debian: LOAD_KEXEC in /etc/default/kexec)"
                    .to_owned(),
            ),
            Self::Connect(error) => error.help(),
            Self::Worker(_) => None,
        }
    }
}

fn describe_arguments(added: &[String]) -> String {
    if added.is_empty() { "without the arguments of ours".to_owned() } else { format!("with {}", added.join(" ")) }
}

/// Has the host of a worker start its kernel again, and connects to it then. `boot` is the boot that it is in.
///
/// # Errors
/// When it does not reboot, or is not back within the limit.
pub async fn reboot(
    worker: Worker,
    boot: &str,
    next: &Boot,
    host: &Host,
    program: &Program,
    options: &ConnectOptions,
    limit: Nanos,
) -> Result<ConnectedHost, RebootError> {
    let deadline = Instant::now() + Duration::from(limit);
    request_reboot(&worker, next, host).await?;
    // Until its agent has ended it is where it was.
    let mut seen = RebootState::SameBoot;
    while Instant::now() < deadline && matches!(seen, RebootState::SameBoot) {
        match worker.clock_offset().await {
            Ok(_) => sleep(POLL_INTERVAL).await,
            Err(error) => seen = RebootState::Away(error.to_string()),
        }
    }
    drop(worker);
    let mut pause = RETRY_PAUSES.0;
    loop {
        let then = Instant::now() + pause;
        if then >= deadline {
            return Err(seen.error(host, limit));
        }
        tokio::time::sleep_until(then).await;
        pause = (pause * 2).min(RETRY_PAUSES.1);
        seen = match timeout_at(deadline, connect(host, program, options)).await {
            Ok(Ok(connected)) => match connected.worker.facts().await {
                Ok(facts) if facts.boot_id != boot => return verify_arguments(connected, next, host).await,
                Ok(_) => RebootState::SameBoot,
                Err(error) => RebootState::Away(error.to_string()),
            },
            Ok(Err(error)) if is_final(&error) => return Err(RebootError::Connect(error)),
            Ok(Err(error)) => RebootState::Away(error.to_string()),
            Err(_) => seen,
        };
    }
}

/// Whether its kernel was started as it was asked to be.
async fn verify_arguments(connected: ConnectedHost, next: &Boot, host: &Host) -> Result<ConnectedHost, RebootError> {
    let line = CommandLine::read(&connected.worker).await?;
    if line.matches_boot(next) {
        return Ok(connected);
    }
    Err(RebootError::WrongArguments { host: host.name.clone(), added: line.added().to_vec() })
}

/// What was last seen of a machine that was asked to reboot.
enum RebootState {
    SameBoot,
    Away(String),
}

impl RebootState {
    fn error(self, host: &Host, limit: Nanos) -> RebootError {
        let host = host.name.clone();
        match self {
            Self::SameBoot => RebootError::SameBoot { host, limit },
            Self::Away(last) => RebootError::TimedOut { host, limit, last },
        }
    }
}

/// Asks for it. That the way to the machine ends meanwhile is what was asked for.
async fn request_reboot(worker: &Worker, next: &Boot, host: &Host) -> Result<(), RebootError> {
    let group = worker.new_group().await?;
    let process = group.spawn(Command::new(next.command())).await?;
    match process.wait(Some(COMMAND_TIMEOUT)).await {
        Err(error) if error.is_lost() => Ok(()),
        Err(error) => Err(error.into()),
        // Some commands last until everything ends, and are ended by it.
        Ok(finished) if finished.ending.is_success() => Ok(()),
        Ok(finished) => {
            let said = last_lines(&finished.stderr);
            let why = if said.is_empty() { finished.ending.to_string() } else { said };
            Err(RebootError::Refused { host: host.name.clone(), why, next: next.clone() })
        }
    }
}

/// Whether waiting brings nothing: the machine is there, and is another.
fn is_final(error: &FleetError) -> bool {
    matches!(
        *error.kind,
        ConnectErrorKind::HostKeyChanged { .. }
            | ConnectErrorKind::UnknownHostKey { .. }
            | ConnectErrorKind::Architecture { .. }
    )
}
