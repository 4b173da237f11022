//! The way to a host: from its address to a worker.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;
use wb_agent::{Controller, SessionConfig, Worker, WorkerError};
use wb_model::{Bytes, Nanos, WorkerName};

use crate::background;
use crate::error::{ConnectErrorKind, FleetError};
use crate::inventory::Host;
use crate::program::Program;
use crate::progress::{Progress, Transfer};
use crate::ssh::{Session, Ssh};

/// How long ssh tries to reach a host.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a host may take for an answer once it is being connected to, jump hosts and logging in included.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// After which time without a word agent and controller give each other up.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How hosts are connected to.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The program that is ssh.
    pub ssh: PathBuf,
    /// Another configuration of ssh than the user's, as `ssh -F` takes it.
    pub ssh_config: Option<PathBuf>,
    /// Whether the host must be ours alone.
    pub exclusive: bool,
    /// Whether there is no use for a host without root's rights.
    pub needs_root: bool,
    /// After which time without a word agent and controller give each other up.
    pub idle_timeout: Duration,
    /// Reports how much of the program is sent.
    pub progress: Progress,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            ssh: PathBuf::from("ssh"),
            ssh_config: None,
            exclusive: true,
            needs_root: false,
            idle_timeout: IDLE_TIMEOUT,
            progress: Progress::default(),
        }
    }
}

/// By which rights an agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privileges {
    /// We are root there.
    Root,
    /// By sudo, which asks for no password.
    Sudo,
    /// A user's.
    User,
}

/// Something about a connection that its user should know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectWarning {
    /// There are no root rights.
    #[error(
        "is used as {user} without root's rights: no knob can be set, no cgroup made, no profile but Localhost applied"
    )]
    NotRoot {
        /// As whom.
        user: String,
    },
    /// The user's configuration has host keys not checked.
    #[error("is not checked to be the right machine: your ssh configuration says StrictHostKeyChecking no for it")]
    HostKeyNotChecked,
}

/// A host that was connected to.
#[derive(Debug)]
pub struct ConnectedHost {
    /// The host.
    pub host: Host,
    /// Its worker.
    pub worker: Worker,
    /// By which rights its agent works.
    pub rights: Privileges,
    /// Its kernel's release.
    pub kernel: String,
    /// Where the program lies there.
    pub program: String,
    /// How the program was sent; none where it was there.
    pub transfer: Option<Transfer>,
    /// What is to be said of it.
    pub warnings: Vec<ConnectWarning>,
}

/// Connects to a host: logs in, sees what it is, puts the program there if it is not, and starts the agent.
///
/// # Errors
/// Typed, and within [`CONNECT`] when nothing answers; within [`PATIENCE`] when it stops answering after that.
pub async fn connect(host: &Host, program: &Program, options: &ConnectOptions) -> Result<ConnectedHost, FleetError> {
    let failed = |why| FleetError::new(host, options, why);
    let (owned, program, options) = (host.clone(), program.clone(), options.clone());
    let runtime = background::runtime().map_err(|error| failed(ConnectErrorKind::SshNotStarted(error)))?;
    let task = runtime.spawn(async move { establish(owned, &program, &options).await });
    match task.await {
        Ok(connected) => connected.map_err(failed),
        Err(error) => Err(failed(ConnectErrorKind::Lost { said: error.to_string() })),
    }
}

/// Connects to all at once; the results in their order.
pub async fn connect_all(
    hosts: &[Host],
    program: &Program,
    options: &ConnectOptions,
) -> Vec<Result<ConnectedHost, FleetError>> {
    let mut tasks = tokio::task::JoinSet::new();
    for (place, host) in hosts.iter().enumerate() {
        let (host, program, options) = (host.clone(), program.clone(), options.clone());
        tasks.spawn(async move { (place, connect(&host, &program, &options).await) });
    }
    let mut done = tasks.join_all().await;
    done.sort_by_key(|(place, _)| *place);
    let mut done: Vec<_> = done.into_iter().map(|(_, result)| result).collect();
    report_same_hosts(&mut done).await;
    done
}

/// Names the other name of each host that was refused because this process is connected to it under that name: its agent
/// is the process that holds the host.
async fn report_same_hosts(done: &mut [Result<ConnectedHost, FleetError>]) {
    let held_by_us = |error: &FleetError| match error.kind.as_ref() {
        ConnectErrorKind::InUse(Some(holder)) if holder.controller == Controller::current() => Some(holder.agent),
        _ => None,
    };
    if !done.iter().filter_map(|result| result.as_ref().err()).any(|error| held_by_us(error).is_some()) {
        return;
    }
    let mut agents: Vec<(u32, WorkerName)> = Vec::new();
    for connected in done.iter().flatten() {
        // An agent that is lost meanwhile is reported when it is used.
        let stat = connected.worker.get("/proc/self/stat", MAX_STAT_SIZE).await.unwrap_or_default();
        let pid = String::from_utf8_lossy(&stat).split(' ').next().and_then(|pid| pid.parse().ok());
        agents.extend(pid.map(|pid| (pid, connected.host.name.clone())));
    }
    for error in done.iter_mut().filter_map(|result| result.as_mut().err()) {
        let Some(holder) = held_by_us(error) else { continue };
        if let Some((_, other)) = agents.iter().find(|(agent, _)| *agent == holder) {
            *error.kind = ConnectErrorKind::SameHost { other: other.clone() };
        }
    }
}

/// More than `/proc/self/stat` has.
const MAX_STAT_SIZE: Bytes = Bytes(4096);

async fn establish(host: Host, program: &Program, options: &ConnectOptions) -> Result<ConnectedHost, ConnectErrorKind> {
    let ssh = Ssh { program: &options.ssh, config: options.ssh_config.as_deref() };
    let mut session = Session::start(&ssh, &host.address).map_err(ConnectErrorKind::SshNotStarted)?;
    let seen = program.probe(&mut session).await?;
    if let Some(why) = seen.check_requirements(options.needs_root) {
        return Err(why);
    }
    let report = |transfer| options.progress.report(&host.name, transfer);
    let sent = program.start(&mut session, &seen, report).await?;
    let terms = SessionConfig {
        exclusive: options.exclusive.then(Controller::current),
        idle_timeout: Some(Nanos(u64::try_from(options.idle_timeout.as_nanos()).unwrap_or(u64::MAX))),
    };
    let Session { input, output, mut end } = session;
    let why_ended = async move { end.wait().await.describe() };
    let greeting = Worker::from_streams(host.name.clone(), input, output, terms, why_ended);
    let worker = match timeout(RESPONSE_TIMEOUT, greeting).await {
        Ok(Ok(worker)) => worker,
        Ok(Err(WorkerError::InUse { holder, .. })) => return Err(ConnectErrorKind::InUse(holder)),
        Ok(Err(error)) => return Err(ConnectErrorKind::Agent(error)),
        Err(_) => return Err(ConnectErrorKind::TimedOut { limit: RESPONSE_TIMEOUT, said: String::new() }),
    };
    let not_root = (seen.rights == Privileges::User).then(|| ConnectWarning::NotRoot { user: seen.user.clone() });
    let not_checked = ssh.skips_host_key_check(&host.address).await.then_some(ConnectWarning::HostKeyNotChecked);
    Ok(ConnectedHost {
        program: worker.program().to_owned(),
        host,
        worker,
        rights: seen.rights,
        kernel: seen.kernel,
        transfer: sent,
        warnings: not_root.into_iter().chain(not_checked).collect(),
    })
}
