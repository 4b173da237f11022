//! Reboots a machine, waits for it, and verifies that it is in a new boot.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use wb_agent::{Command, Worker, WorkerError};
use wb_fleet::{ConnectErrorKind, ConnectOptions, ConnectedHost, FleetError, Host, Program, connect};
use wb_model::{Nanos, WorkerName};

use crate::boot::{Boot, CommandLine};
use crate::controller::last_lines;

/// Time limit of the command that starts the reboot.
const COMMAND_TIMEOUT: Nanos = Nanos(60_000_000_000);
/// Interval for polling whether the machine is still up.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Pause before the first attempt to reconnect, and maximum pause between attempts.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

#[derive(Debug, thiserror::Error)]
pub enum RebootError {
    #[error("cannot reboot `{host}`: {reason}")]
    Refused { host: WorkerName, reason: String, next: Boot },
    #[error("`{host}` was told to reboot and is still in the same boot after {limit}")]
    SameBoot { host: WorkerName, limit: Nanos },
    #[error("`{host}` did not come back from its reboot within {limit}: {last}")]
    TimedOut { host: WorkerName, limit: Nanos, last: String },
    #[error("`{host}` rebooted, but its kernel was started {}", describe_arguments(.added))]
    WrongArguments { host: WorkerName, added: Vec<String> },
    /// The machine can no longer be connected to, for a permanent reason.
    #[error("after its reboot {0}")]
    Connect(FleetError),
    /// The connection was lost before the reboot.
    #[error(transparent)]
    Worker(#[from] WorkerError),
}

impl RebootError {
    pub fn help(&self) -> Option<String> {
        match self {
            Self::SameBoot { .. } | Self::TimedOut { .. } => {
                Some("raise --reboot-limit, or look at its console for what it waits for".to_owned())
            }
            Self::Refused { next: Boot::Default, .. } => {
                Some("`systemctl reboot` or `reboot` must work on the host as root".to_owned())
            }
            Self::Refused { next: Boot::Kexec(_), .. } => {
                Some("kernel parameters need kexec on the host as root; docs/profiles.md has alternatives".to_owned())
            }
            Self::WrongArguments { .. } => Some(
                "a service on the host loads another kernel at every reboot; disable it (Debian: LOAD_KEXEC in /etc/default/kexec)"
                    .to_owned(),
            ),
            Self::Connect(error) => error.help(),
            Self::Worker(_) => None,
        }
    }
}

fn describe_arguments(added: &[String]) -> String {
    if added.is_empty() { "without the requested parameters".to_owned() } else { format!("with {}", added.join(" ")) }
}

/// Reboots the host of a worker and reconnects to it. `boot` is the ID of its current boot.
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
    // The machine is in the same boot until its agent has ended.
    let mut state = RebootState::SameBoot;
    while Instant::now() < deadline && matches!(state, RebootState::SameBoot) {
        match worker.clock_offset().await {
            Ok(_) => sleep(POLL_INTERVAL).await,
            Err(error) => state = RebootState::Away(error.to_string()),
        }
    }
    drop(worker);
    let mut pause = RETRY_PAUSES.0;
    loop {
        let next_attempt = Instant::now() + pause;
        if next_attempt >= deadline {
            return Err(state.error(host, limit));
        }
        tokio::time::sleep_until(next_attempt).await;
        pause = (pause * 2).min(RETRY_PAUSES.1);
        state = match timeout_at(deadline, connect(host, program, options)).await {
            Ok(Ok(connected)) => match connected.worker.facts().await {
                Ok(facts) if facts.boot_id != boot => return verify_arguments(connected, next, host).await,
                Ok(_) => RebootState::SameBoot,
                Err(error) => RebootState::Away(error.to_string()),
            },
            Ok(Err(error)) if is_final(&error) => return Err(RebootError::Connect(error)),
            Ok(Err(error)) => RebootState::Away(error.to_string()),
            Err(_) => state,
        };
    }
}

async fn verify_arguments(connected: ConnectedHost, next: &Boot, host: &Host) -> Result<ConnectedHost, RebootError> {
    let line = CommandLine::read(&connected.worker).await?;
    if line.matches_boot(next) {
        return Ok(connected);
    }
    Err(RebootError::WrongArguments { host: host.name.clone(), added: line.added().to_vec() })
}

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

/// Starts the reboot. A connection lost meanwhile counts as success.
async fn request_reboot(worker: &Worker, next: &Boot, host: &Host) -> Result<(), RebootError> {
    let group = worker.new_group().await?;
    let process = group.spawn(Command::new(next.command())).await?;
    match process.wait(Some(COMMAND_TIMEOUT)).await {
        Err(error) if error.is_lost() => Ok(()),
        Err(error) => Err(error.into()),
        // Some commands run until the shutdown ends them.
        Ok(finished) if finished.exit_reason.is_success() => Ok(()),
        Ok(finished) => {
            let message = last_lines(&finished.stderr);
            let reason = if message.is_empty() { finished.exit_reason.to_string() } else { message };
            Err(RebootError::Refused { host: host.name.clone(), reason, next: next.clone() })
        }
    }
}

/// Whether waiting is futile: the machine responds, but it is another one.
fn is_final(error: &FleetError) -> bool {
    matches!(
        *error.kind,
        ConnectErrorKind::HostKeyChanged { .. }
            | ConnectErrorKind::UnknownHostKey { .. }
            | ConnectErrorKind::Architecture { .. }
    )
}
