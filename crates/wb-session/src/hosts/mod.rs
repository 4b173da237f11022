//! Connects to the requested hosts, prepares them and closes them: from options to workers.

mod error;
mod host_selection;
mod kernel_arguments;
mod preparation;
mod profiled_hosts;
mod restart;
mod targets;

use std::collections::BTreeMap;
use std::path::PathBuf;

use wb_agent::{Worker, WorkerError};
use wb_fleet::{Address, ConnectOptions, Host, HostParams, Inventory, Progress, connect_all};
use wb_model::WorkerName;
use wb_model::secrets::mask_fields;
use wb_run::{PooledWorker, WorkerPool};

use self::host_selection::{RequestedHost, RequestedHosts, resolve_hosts};
use crate::error::SessionError;
use crate::event::{EventSink, HostEvent};
use crate::options::{HostOptions, HostSelection};
use crate::worker_program::{read_worker_program, worker_program};

pub use self::error::HostError;
pub use self::kernel_arguments::KernelReset;
pub(crate) use self::kernel_arguments::refuse_local_kernel_arguments;
pub use self::preparation::HostPreparation;
pub(crate) use self::preparation::{prepare_hosts, require_any_host};
pub(crate) use self::profiled_hosts::{ProfileFailurePolicy, ProfiledHosts};
pub use self::profiled_hosts::{localhost, profile_catalog, requested_profiles};
pub use wb_fleet::inventory::LOOPBACK_ADDRESSES;

/// Address by which workers on one machine reach each other.
const LOOPBACK: &str = "127.0.0.1";

/// The requested hosts, connected.
pub struct ConnectedHosts {
    pub pool: WorkerPool,
    connections: BTreeMap<WorkerName, HostConnection>,
    /// The hosts other than this machine.
    remotes: Vec<Host>,
    options: ConnectOptions,
    assets: Vec<PathBuf>,
    events: EventSink,
}

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

    /// The selection of one of these hosts alone; `None` for the machine of this process.
    pub fn select_only(&self, name: &WorkerName, selection: &HostSelection) -> Option<HostSelection> {
        let address = self.connections.get(name)?.address.as_ref()?;
        let selects_it = |word: &&String| {
            let alone = Inventory::default().select(std::slice::from_ref(*word));
            alone.is_ok_and(|hosts| hosts.iter().any(|host| host.name == *name && host.address == *address))
        };
        let (inventory, word) = match selection.hosts.iter().find(selects_it) {
            Some(word) => (None, word.clone()),
            None => (selection.inventory.clone(), name.to_string()),
        };
        Some(HostSelection { hosts: vec![word], inventory, ssh_config: selection.ssh_config.clone() })
    }

    fn iter(&self) -> impl Iterator<Item = (&PooledWorker, &HostConnection)> {
        self.pool.workers.iter().filter_map(|member| Some((member, self.connections.get(member.worker.name())?)))
    }
}

/// Connects to the requested hosts; to this machine if none is requested. An unreachable host causes a warning as long
/// as there are others.
pub async fn connect_hosts(host_options: &HostOptions, events: &EventSink) -> Result<ConnectedHosts, SessionError> {
    connect_requested(resolve_hosts(host_options)?, BTreeMap::new(), host_options, events).await
}

/// Connects to the requested hosts, except for those that are excluded already.
async fn connect_requested(
    requested: RequestedHosts,
    absent: BTreeMap<WorkerName, String>,
    host_options: &HostOptions,
    events: &EventSink,
) -> Result<ConnectedHosts, SessionError> {
    let RequestedHosts { hosts: places, groups } = requested;
    let connected = |pool, connections, remotes| ConnectedHosts {
        pool,
        connections,
        remotes,
        options: connect_options(host_options),
        assets: host_options.paths.clone(),
        events: events.clone(),
    };
    if places.is_empty() {
        let params = host_selection::implicit_local_params(host_options)?;
        let connection = HostConnection { params, address: None };
        let pool = if absent.is_empty() {
            let member = PooledWorker::with_facts(local_worker().await?).await?;
            host_selection::report_mismatches(&member.worker, &connection.params, events).await?;
            WorkerPool::single(member)
        } else {
            WorkerPool { unreachable: absent, ..WorkerPool::default() }
        };
        return Ok(connected(pool, BTreeMap::from([(WorkerName::local(), connection)]), Vec::new()));
    }
    let mut pool = WorkerPool { groups, unreachable: absent, ..WorkerPool::default() };
    let mut reached = BTreeMap::new();
    let places: Vec<RequestedHost> =
        places.into_iter().filter(|place| !pool.unreachable.contains_key(place.name())).collect();
    let all_local = places.iter().all(|place| matches!(place, RequestedHost::Local { .. }));
    for place in &places {
        let RequestedHost::Local { name, params } = place else { continue };
        let worker = Worker::local_named(name.clone(), &worker_program()?).await?;
        let address = all_local.then(|| LOOPBACK.to_owned());
        let connection = HostConnection { params: (**params).clone(), address: None };
        host_selection::report_mismatches(&worker, &connection.params, events).await?;
        pool.workers.push(PooledWorker { address, ..PooledWorker::with_facts(worker).await? });
        reached.insert(name.clone(), connection);
    }
    let others: Vec<Host> = places.iter().filter_map(RequestedHost::remote).cloned().collect();
    for host in &others {
        let address = Some(host.address.clone());
        reached.insert(host.name.clone(), HostConnection { params: host.params.clone(), address });
    }
    connect_remotes(&mut pool, &others, host_options, events).await?;
    // Keep the requested order, because roles are assigned by it.
    let place_of = |name: &WorkerName| places.iter().position(|place| place.name() == name);
    pool.workers.sort_by_key(|member| place_of(member.worker.name()));
    Ok(connected(pool, reached, others))
}

fn connect_options(host_options: &HostOptions) -> ConnectOptions {
    ConnectOptions { ssh_config: host_options.selection.ssh_config.clone(), ..ConnectOptions::default() }
}

/// Connects to the other hosts, all at the same time.
async fn connect_remotes(
    pool: &mut WorkerPool,
    hosts: &[Host],
    host_options: &HostOptions,
    events: &EventSink,
) -> Result<(), SessionError> {
    if hosts.is_empty() {
        return Ok(());
    }
    let mut failed = Vec::new();
    let sink = events.clone();
    let progress = Progress::new(move |host, transfer| {
        sink.emit_host(host, HostEvent::Transfer(transfer));
    });
    let options = ConnectOptions { progress, ..connect_options(host_options) };
    for connected in connect_all(hosts, &read_worker_program()?, &options).await {
        match connected {
            Ok(connected) => {
                host_selection::report_host(&connected, events).await?;
                let address = Some(host_selection::data_address(&connected));
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
    failed.into_iter().for_each(|error| events.warn(error));
    last.map_or(Ok(()), |error| Err(error.into()))
}

pub async fn local_worker() -> Result<Worker, SessionError> {
    Ok(Worker::local(&worker_program()?).await?)
}

impl ConnectedHosts {
    /// Ends the agents of all workers; a new agent cleans up after one that was killed. Returns the first failure,
    /// except for lost workers, which the run has reported.
    pub async fn close(mut self) -> Result<(), WorkerError> {
        let mut all = Ok(());
        for PooledWorker { worker, .. } in std::mem::take(&mut self.pool.workers) {
            let (name, changed) = (worker.name().clone(), worker.pending_changes());
            let may_have_left = worker.agent_pid().is_some() || !changed.is_empty();
            let closed = worker.close().await;
            if closed.is_err() && may_have_left {
                match self.start_agent(&name, changed).await {
                    Ok(next) => next.close().await?,
                    Err(still) => self.events.warn(SessionError::StillChanged { host: name, still }),
                }
            }
            let lost = matches!(closed, Err(WorkerError::Lost { .. }));
            all = all.and(if lost { Ok(()) } else { closed });
        }
        all
    }
}
