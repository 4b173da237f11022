//! Connecting to hosts: from an address to a worker.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;
use wb_agent::{Controller, SessionConfig, Worker, WorkerError};
use wb_model::{Bytes, Nanos, WorkerName};
use wb_sys::process::tree;

use crate::background;
use crate::deploy::Privileges;
use crate::error::{ConnectErrorKind, FleetError};
use crate::inventory::Host;
use crate::limits::{IDLE_TIMEOUT, RESPONSE_TIMEOUT};
use crate::program::Program;
use crate::progress::{Progress, Transfer};
use crate::ssh::{Session, Ssh};

/// Options for connecting to hosts.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The ssh program.
    pub ssh: PathBuf,
    /// Alternative ssh configuration, as for `ssh -F`.
    pub ssh_config: Option<PathBuf>,
    /// Whether to use the host exclusively.
    pub exclusive: bool,
    /// Whether root privileges on the host are required.
    pub needs_root: bool,
    /// Idle timeout of agent and controller.
    pub idle_timeout: Duration,
    /// Observer of the transfer of the program.
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

/// Warning about a connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectWarning {
    /// The agent has no root privileges, but those of this user.
    #[error(
        "is used as {0} without root privileges: knobs, cgroups and profiles other than Localhost are not available"
    )]
    NotRoot(String),
    /// The user's ssh configuration disables host key checking.
    #[error("is used without checking its host key: your ssh configuration sets StrictHostKeyChecking to no")]
    HostKeyNotChecked,
}

/// A connected host.
#[derive(Debug)]
pub struct ConnectedHost {
    /// The host.
    pub host: Host,
    /// Its worker.
    pub worker: Worker,
    /// Privileges of its agent.
    pub rights: Privileges,
    /// Its kernel's release.
    pub kernel: String,
    /// Path of the program on it.
    pub program: String,
    /// Transfer of the program; none if it was cached there.
    pub transfer: Option<Transfer>,
    /// Warnings about the connection.
    pub warnings: Vec<ConnectWarning>,
}

/// Connects to a host: logs in, probes it, deploys the program if it is missing, and starts the agent.
///
/// # Errors
/// Within [`CONNECT_TIMEOUT`](crate::limits::CONNECT_TIMEOUT) if the host does not respond, within
/// [`RESPONSE_TIMEOUT`] if it stops responding after that.
pub async fn connect(host: &Host, program: &Program, options: &ConnectOptions) -> Result<ConnectedHost, FleetError> {
    let ssh_config = options.ssh_config.clone();
    let failed = |kind| FleetError {
        host: host.name.clone(),
        address: host.address.clone(),
        ssh_config: ssh_config.clone(),
        kind: Box::new(kind),
    };
    let (owned, program, options) = (host.clone(), program.clone(), options.clone());
    let runtime = background::runtime().map_err(|error| failed(ConnectErrorKind::SshNotStarted(error)))?;
    let task = runtime.spawn(async move { establish(owned, &program, &options).await });
    match task.await {
        Ok(connected) => connected.map_err(failed),
        Err(error) => Err(failed(ConnectErrorKind::Lost(error.to_string()))),
    }
}

/// Connects to all hosts concurrently; the results are in the order of the hosts.
pub async fn connect_all(
    hosts: &[Host],
    program: &Program,
    options: &ConnectOptions,
) -> Vec<Result<ConnectedHost, FleetError>> {
    let mut tasks = tokio::task::JoinSet::new();
    for (index, host) in hosts.iter().enumerate() {
        let (host, program, options) = (host.clone(), program.clone(), options.clone());
        tasks.spawn(async move { (index, connect(&host, &program, &options).await) });
    }
    let mut results = tasks.join_all().await;
    results.sort_by_key(|(index, _)| *index);
    let mut results: Vec<_> = results.into_iter().map(|(_, result)| result).collect();
    report_same_hosts(&mut results).await;
    results
}

/// Changes the error of each host that was refused because this process is connected to it under another name, so that
/// it gives that name: the holder is the agent of that connection.
async fn report_same_hosts(results: &mut [Result<ConnectedHost, FleetError>]) {
    let own_agent = |error: &FleetError| match error.kind.as_ref() {
        ConnectErrorKind::InUse(Some(holder)) if holder.controller == Controller::current() => Some(holder.agent),
        _ => None,
    };
    if !results.iter().filter_map(|result| result.as_ref().err()).any(|error| own_agent(error).is_some()) {
        return;
    }
    let mut agents: Vec<(u32, WorkerName)> = Vec::new();
    for connected in results.iter().flatten() {
        // An agent that is lost meanwhile is reported at its next use.
        let stat = connected.worker.get("/proc/self/stat", MAX_STAT_SIZE).await.unwrap_or_default();
        let agent = tree::parse_stat(&String::from_utf8_lossy(&stat));
        agents.extend(agent.map(|agent| (agent.pid, connected.host.name.clone())));
    }
    for error in results.iter_mut().filter_map(|result| result.as_mut().err()) {
        let Some(holder) = own_agent(error) else { continue };
        if let Some((_, other)) = agents.iter().find(|(agent, _)| *agent == holder) {
            *error.kind = ConnectErrorKind::SameHost(other.clone());
        }
    }
}

/// Maximum size of `/proc/self/stat`.
const MAX_STAT_SIZE: Bytes = Bytes(4096);

async fn establish(host: Host, program: &Program, options: &ConnectOptions) -> Result<ConnectedHost, ConnectErrorKind> {
    let ssh = Ssh { program: &options.ssh, config: options.ssh_config.as_deref() };
    let mut session = Session::start(&ssh, &host.address).map_err(ConnectErrorKind::SshNotStarted)?;
    let probe = program.probe(&mut session).await?;
    if let Some(why) = probe.check_requirements(options.needs_root) {
        return Err(why);
    }
    let report = |transfer| options.progress.report(&host.name, transfer);
    let sent = program.start(&mut session, &probe, report).await?;
    let terms = SessionConfig {
        exclusive: options.exclusive.then(Controller::current),
        idle_timeout: Some(Nanos(u64::try_from(options.idle_timeout.as_nanos()).unwrap_or(u64::MAX))),
    };
    let Session { input, output, process: mut end } = session;
    let why_ended = async move { end.wait().await.describe() };
    let handshake = Worker::from_streams(host.name.clone(), input, output, terms, why_ended);
    let worker = match timeout(RESPONSE_TIMEOUT, handshake).await {
        Ok(Ok(worker)) => worker,
        Ok(Err(WorkerError::InUse { holder, .. })) => return Err(ConnectErrorKind::InUse(holder)),
        Ok(Err(error)) => return Err(ConnectErrorKind::Agent(error)),
        Err(_) => return Err(ConnectErrorKind::TimedOut { limit: RESPONSE_TIMEOUT, message: String::new() }),
    };
    let not_root = (probe.rights == Privileges::User).then(|| ConnectWarning::NotRoot(probe.user.clone()));
    let not_checked = ssh.skips_host_key_check(&host.address).await.then_some(ConnectWarning::HostKeyNotChecked);
    Ok(ConnectedHost {
        program: worker.program().to_owned(),
        host,
        worker,
        rights: probe.rights,
        kernel: probe.kernel,
        transfer: sent,
        warnings: not_root.into_iter().chain(not_checked).collect(),
    })
}
