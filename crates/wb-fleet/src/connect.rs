use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;
use wb_agent::{Controller, SessionConfig, Worker, WorkerError};
use wb_model::{Bytes, Nanos, WorkerName};
use wb_sys::process::tree;

use crate::background;
use crate::deploy::{HostProbe, Privileges};
use crate::error::{ConnectErrorKind, FleetError};
use crate::inventory::Host;
use crate::limits::{IDLE_TIMEOUT, RESPONSE_TIMEOUT};
use crate::program::Program;
use crate::progress::{Progress, Transfer};
use crate::ssh::{Session, Ssh};

#[derive(Debug, Clone)]
pub struct ConnectOptions {
    pub ssh: PathBuf,
    /// Alternative ssh configuration, as for `ssh -F`.
    pub ssh_config: Option<PathBuf>,
    pub exclusive: bool,
    pub needs_root: bool,
    /// Idle timeout of agent and controller.
    pub idle_timeout: Duration,
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectWarning {
    #[error(
        "is used as {0} without root privileges: knobs, cgroups and profiles other than Localhost are not available"
    )]
    NotRoot(String),
    #[error("is used without checking its host key: your ssh configuration sets StrictHostKeyChecking to no")]
    HostKeyNotChecked,
}

#[derive(Debug)]
pub struct ConnectedHost {
    pub host: Host,
    /// The name or address by which ssh finds it: `HostName` in the ssh configuration.
    pub network_name: String,
    pub worker: Worker,
    pub rights: Privileges,
    pub kernel: String,
    /// The program's path on the host.
    pub program: String,
    /// Transfer of the program; none if it was cached there.
    pub transfer: Option<Transfer>,
    pub warnings: Vec<ConnectWarning>,
}

/// Connects to a host: logs in, probes it, deploys the program if it is missing, and starts the agent. Fails within
/// [`CONNECT_TIMEOUT`](crate::limits::CONNECT_TIMEOUT) if the host does not respond, within [`RESPONSE_TIMEOUT`] if it
/// stops responding after that.
pub async fn connect(host: &Host, program: &Program, options: &ConnectOptions) -> Result<ConnectedHost, FleetError> {
    let failed = |kind| fleet_error(host, options, kind);
    let (owned, program, options) = (host.clone(), program.clone(), options.clone());
    let connecting = async move { start(probe(owned, &program, &options).await?, &program, &options).await };
    in_background(connecting).await.map_err(failed)
}

/// Connects to all hosts concurrently; the results are in their order. All are probed before the program is sent to
/// any: a machine that has two names is refused under the second one.
pub async fn connect_all(
    hosts: &[Host],
    program: &Program,
    options: &ConnectOptions,
) -> Vec<Result<ConnectedHost, FleetError>> {
    let probing = hosts.iter().cloned().map(|host| {
        let (program, options) = (program.clone(), options.clone());
        in_background(async move { probe(host, &program, &options).await })
    });
    let mut probed = all(probing).await;
    // Right after the login: copying the program to each takes minutes.
    refuse_same_machines(&mut probed);
    let starting = probed.into_iter().map(|probed| {
        let (program, options) = (program.clone(), options.clone());
        in_background(async move { start(probed?, &program, &options).await })
    });
    let started = all(starting).await.into_iter().zip(hosts);
    let mut results: Vec<_> =
        started.map(|(started, host)| started.map_err(|kind| fleet_error(host, options, kind))).collect();
    report_same_hosts(&mut results).await;
    results
}

fn fleet_error(host: &Host, options: &ConnectOptions, kind: ConnectErrorKind) -> FleetError {
    FleetError {
        host: host.name.clone(),
        address: host.address.clone(),
        ssh_config: options.ssh_config.clone(),
        kind: Box::new(kind),
    }
}

/// Executes on the runtime that keeps connections alive.
async fn in_background<T: Send + 'static>(
    connecting: impl Future<Output = Result<T, ConnectErrorKind>> + Send + 'static,
) -> Result<T, ConnectErrorKind> {
    let runtime = background::runtime().map_err(ConnectErrorKind::SshNotStarted)?;
    runtime.spawn(connecting).await.unwrap_or_else(|error| Err(ConnectErrorKind::Lost(error.to_string())))
}

async fn all<T: Send + 'static>(futures: impl Iterator<Item = impl Future<Output = T> + Send + 'static>) -> Vec<T> {
    let mut tasks = tokio::task::JoinSet::new();
    for (index, future) in futures.enumerate() {
        tasks.spawn(async move { (index, future.await) });
    }
    let mut results = tasks.join_all().await;
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn refuse_same_machines(probed: &mut [Result<ProbedHost, ConnectErrorKind>]) {
    let mut machines: BTreeMap<String, WorkerName> = BTreeMap::new();
    for result in probed {
        let Ok(ProbedHost { host, probe, .. }) = result else { continue };
        if probe.machine.is_empty() {
            continue;
        }
        match machines.get(&probe.machine) {
            // Dropping the session ends it.
            Some(other) => *result = Err(ConnectErrorKind::SameHost(other.clone())),
            None => drop(machines.insert(probe.machine.clone(), host.name.clone())),
        }
    }
}

/// Where a host was refused because this process is connected to the machine under another name, makes the error give
/// that name: the holder is the agent of that connection.
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

const MAX_STAT_SIZE: Bytes = Bytes(4096);

/// A host after the login, before anything is changed on it.
struct ProbedHost {
    host: Host,
    session: Session,
    probe: HostProbe,
}

impl ConnectOptions {
    fn ssh(&self) -> Ssh<'_> {
        Ssh { program: &self.ssh, config: self.ssh_config.as_deref() }
    }
}

async fn probe(host: Host, program: &Program, options: &ConnectOptions) -> Result<ProbedHost, ConnectErrorKind> {
    let mut session = Session::start(&options.ssh(), &host.address).map_err(ConnectErrorKind::SshNotStarted)?;
    let probe = program.probe(&mut session).await?;
    match probe.check_requirements(options.needs_root) {
        Some(why) => Err(why),
        None => Ok(ProbedHost { host, session, probe }),
    }
}

async fn start(
    probed: ProbedHost,
    program: &Program,
    options: &ConnectOptions,
) -> Result<ConnectedHost, ConnectErrorKind> {
    let ProbedHost { host, mut session, probe } = probed;
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
    let config = options.ssh().config(&host.address).await;
    let not_checked = config.skips_host_key_check().then_some(ConnectWarning::HostKeyNotChecked);
    Ok(ConnectedHost {
        network_name: config.host_name().unwrap_or(&host.address.host).to_owned(),
        program: worker.program().to_owned(),
        host,
        worker,
        rights: probe.rights,
        kernel: probe.kernel,
        transfer: sent,
        warnings: not_root.into_iter().chain(not_checked).collect(),
    })
}
