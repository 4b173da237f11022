//! Connects to the requested hosts and closes them: from command-line flags to workers.

mod host_selection;
mod kernel_arguments;
mod preparation;
mod profiled_hosts;
mod restart;
mod targets;
mod transfer;

use std::collections::BTreeMap;
use std::path::PathBuf;

use wb_agent::{Worker, WorkerError};
use wb_fleet::{Address, ConnectOptions, FleetError, Host, HostParams, Inventory, Program, connect_all};
use wb_model::WorkerName;
use wb_model::secrets::mask_fields;
use wb_run::{PooledWorker, WorkerPool};

use self::host_selection::{RequestedHost, RequestedHosts, resolve_hosts};
use super::current_program;
use crate::cli::{HostFlags, HostSelectionFlags};
use crate::console::Console;
use crate::error::Error;

pub(crate) use self::host_selection::LOOPBACK_ADDRESSES;
pub(crate) use self::kernel_arguments::{refuse_local_kernel_arguments, reset_kernels, start_kernels};
pub(crate) use self::preparation::{HostPreparation, exclude_changed_hosts, prepare_hosts, report_all_leftovers};
pub(crate) use self::profiled_hosts::{
    ProfiledHosts, UnmetProfilePolicy, apply_profile, localhost, preflight_hosts, profile_catalog, requested_profiles,
};

/// Address by which workers on one machine reach each other.
const LOOPBACK: &str = "127.0.0.1";

/// The requested hosts, connected.
pub(crate) struct ConnectedHosts {
    /// Their workers.
    pub(crate) pool: WorkerPool,
    connections: BTreeMap<WorkerName, HostConnection>,
    /// The hosts other than this machine.
    remotes: Vec<Host>,
    /// How `others` are connected to.
    options: ConnectOptions,
}

/// How a host was reached, and its parameters.
#[derive(Default)]
struct HostConnection {
    params: HostParams,
    /// `None` for this machine.
    address: Option<Address>,
}

impl ConnectedHosts {
    /// Address and parameters of each host that has any, as recorded in the run.
    pub(crate) fn to_record(&self) -> BTreeMap<WorkerName, serde_json::Value> {
        let of = |(name, HostConnection { params, address }): (&WorkerName, &HostConnection)| {
            let address = address.as_ref().map(Address::to_string);
            let is_empty = address.is_none() && *params == HostParams::default();
            let recorded =
                || serde_json::json!({ "address": address, "params": mask_fields(serde_json::json!(params)) });
            (!is_empty).then(|| (name.clone(), recorded()))
        };
        self.connections.iter().filter_map(of).collect()
    }

    /// Command-line options that select one of the hosts as these flags do: the `--hosts` argument with its address, or
    /// its name in the inventory. Empty for the machine of this process.
    pub(crate) fn options_for(&self, name: &WorkerName, flags: &HostSelectionFlags) -> Vec<String> {
        let Some(address) = self.connections.get(name).and_then(|reached| reached.address.as_ref()) else {
            return Vec::new();
        };
        let file = |flag: &str, path: &Option<PathBuf>| {
            let path = path.as_ref().map(|path| path.display().to_string());
            path.map_or_else(Vec::new, |path| vec![flag.to_owned(), path])
        };
        let selects_it = |word: &&String| {
            let alone = Inventory::default().select(std::slice::from_ref(*word));
            alone.is_ok_and(|hosts| hosts.iter().any(|host| host.name == *name && host.address == *address))
        };
        let (inventory, word) = match flags.hosts.iter().find(selects_it) {
            Some(word) => (Vec::new(), word.clone()),
            None => (file("--inventory", &flags.inventory), name.to_string()),
        };
        let hosts = vec!["--hosts".to_owned(), word];
        [inventory, hosts, file("--ssh-config", &flags.ssh_config)].concat()
    }

    /// Iterates over the hosts with their connections.
    fn iter(&self) -> impl Iterator<Item = (&PooledWorker, &HostConnection)> {
        self.pool.workers.iter().filter_map(|member| Some((member, self.connections.get(member.worker.name())?)))
    }
}

/// Connects to the requested hosts; to this machine if none is requested. An unreachable host causes a warning as long
/// as there are others.
pub(crate) async fn connect_hosts(flags: &HostFlags, console: &Console) -> Result<ConnectedHosts, Error> {
    connect_requested(resolve_hosts(flags)?, BTreeMap::new(), flags, console).await
}

/// Connects to the requested hosts, except for those that are excluded already.
async fn connect_requested(
    requested: RequestedHosts,
    absent: BTreeMap<WorkerName, String>,
    flags: &HostFlags,
    console: &Console,
) -> Result<ConnectedHosts, Error> {
    let RequestedHosts { hosts: places, groups } = requested;
    if places.is_empty() {
        let reached = BTreeMap::from([(WorkerName::local(), local_connection(flags, &WorkerName::local())?)]);
        let pool = match absent.is_empty() {
            true => WorkerPool::single(PooledWorker::with_facts(local_worker().await?).await?),
            false => WorkerPool { unreachable: absent, ..WorkerPool::default() },
        };
        return Ok(ConnectedHosts { pool, connections: reached, remotes: Vec::new(), options: connect_options(flags) });
    }
    let mut pool = WorkerPool { groups, unreachable: absent, ..WorkerPool::default() };
    let mut reached = BTreeMap::new();
    let places: Vec<RequestedHost> =
        places.into_iter().filter(|place| !pool.unreachable.contains_key(place.name())).collect();
    let all_local = places.iter().all(|place| matches!(place, RequestedHost::Local(_)));
    for name in places.iter().filter_map(RequestedHost::local_name) {
        let worker = Worker::local_named(name.clone(), &current_program()?).await?;
        let address = all_local.then(|| LOOPBACK.to_owned());
        pool.workers.push(PooledWorker { address, ..PooledWorker::with_facts(worker).await? });
        reached.insert(name.clone(), local_connection(flags, name)?);
    }
    let others: Vec<Host> = places.iter().filter_map(RequestedHost::remote).cloned().collect();
    for host in &others {
        let address = Some(host.address.clone());
        reached.insert(host.name.clone(), HostConnection { params: host.params.clone(), address });
    }
    connect_remotes(&mut pool, &others, flags, console).await?;
    // Keep the requested order, because roles are assigned by it.
    let place_of = |name: &WorkerName| places.iter().position(|place| place.name() == name);
    pool.workers.sort_by_key(|member| place_of(member.worker.name()));
    Ok(ConnectedHosts { pool, connections: reached, remotes: others, options: connect_options(flags) })
}

/// The connection of this machine, with its parameters.
fn local_connection(flags: &HostFlags, name: &WorkerName) -> Result<HostConnection, Error> {
    Ok(HostConnection { params: host_selection::local_params(flags, name)?, address: None })
}

/// Options for connecting to hosts.
fn connect_options(flags: &HostFlags) -> ConnectOptions {
    ConnectOptions { ssh_config: flags.selection.ssh_config.clone(), ..ConnectOptions::default() }
}

/// Reads this program, to copy it to hosts.
fn read_program() -> Result<Program, Error> {
    let path = current_program()?;
    Program::read(&path).map_err(|source| Error::File { path: path.display().to_string(), source })
}

/// Connects to the other hosts, all at the same time.
async fn connect_remotes(
    pool: &mut WorkerPool,
    hosts: &[Host],
    flags: &HostFlags,
    console: &Console,
) -> Result<(), Error> {
    if hosts.is_empty() {
        return Ok(());
    }
    let mut failed = Vec::new();
    let options = ConnectOptions { progress: transfer::progress_reporter(console), ..connect_options(flags) };
    for connected in connect_all(hosts, &read_program()?, &options).await {
        match connected {
            Ok(connected) => {
                host_selection::report_host(&connected, console).await?;
                let address = Some(host_selection::data_address(&connected.host));
                pool.workers.push(PooledWorker { address, ..PooledWorker::with_facts(connected.worker).await? });
            }
            Err(error) => {
                pool.unreachable.insert(error.host.clone(), error.to_string());
                failed.push(error);
            }
        }
    }
    // If no host is left, the last failure is the error.
    let last = if pool.workers.is_empty() { failed.pop() } else { None };
    failed.iter().for_each(warn_unreachable);
    last.map_or(Ok(()), |error| Err(error.into()))
}

/// Warns about an unreachable host.
fn warn_unreachable(error: &FleetError) {
    crate::console::message!("warning: {error}");
    if let Some(help) = error.help() {
        crate::console::message!("help: {help}");
    }
}

/// Starts a worker on this machine.
pub(crate) async fn local_worker() -> Result<Worker, Error> {
    Ok(Worker::local(&current_program()?).await?)
}

/// Ends the agents of all workers and returns the first failure, except for lost workers, which the run has reported. A
/// new agent cleans up after one that was killed.
pub(crate) async fn close(mut hosts: ConnectedHosts) -> Result<(), WorkerError> {
    let mut all = Ok(());
    for PooledWorker { worker, .. } in std::mem::take(&mut hosts.pool.workers) {
        let (name, changed) = (worker.name().clone(), worker.pending_changes());
        let may_have_left = worker.agent_pid().is_some() || !changed.is_empty();
        let closed = worker.close().await;
        if closed.is_err() && may_have_left {
            match hosts.start_agent(&name, changed).await {
                Ok(next) => next.close().await?,
                Err(still) => Error::StillChanged { host: name, still }.warn(),
            }
        }
        let lost = matches!(closed, Err(WorkerError::Lost { .. }));
        all = all.and(if lost { Ok(()) } else { closed });
    }
    all
}
