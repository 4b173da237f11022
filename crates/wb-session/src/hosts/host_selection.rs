//! Resolves the selection of hosts to hosts with their parameters.

use std::collections::BTreeMap;

use wb_agent::Worker;
use wb_fleet::inventory::{ForcedParams, LOOPBACK_ADDRESSES, read_host_file};
use wb_fleet::{ConnectedHost, Host, HostParams, Inventory};
use wb_model::WorkerName;

use super::HostError;
use crate::error::SessionError;
use crate::event::{EventSink, HostEvent};
use crate::options::HostOptions;

const LOCAL: &str = "local";
/// Inventory key of the address by which other hosts reach a host, if different from its ssh address.
const DATA_ADDRESS: &str = "data-address";

pub(super) enum RequestedHost {
    /// This machine, under a name.
    Local {
        name: WorkerName,
        params: Box<HostParams>,
    },
    Remote(Box<Host>),
}

/// The requested machines, in order, and the groups of the inventory.
pub(super) struct RequestedHosts {
    pub(super) hosts: Vec<RequestedHost>,
    pub(super) groups: BTreeMap<String, Vec<WorkerName>>,
}

impl RequestedHosts {
    /// Whether this machine is selected; it is if no host was requested.
    pub(super) fn includes_local(&self) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|host| host.local_name().is_some())
    }
}

impl RequestedHost {
    pub(super) fn name(&self) -> &WorkerName {
        match self {
            Self::Local { name, .. } => name,
            Self::Remote(host) => &host.name,
        }
    }

    pub(super) fn local_name(&self) -> Option<&WorkerName> {
        if let Self::Local { name, .. } = self { Some(name) } else { None }
    }

    pub(super) fn remote(&self) -> Option<&Host> {
        if let Self::Remote(host) = self { Some(host) } else { None }
    }
}

impl From<Host> for RequestedHost {
    fn from(host: Host) -> Self {
        let is_local = host.address.host == LOCAL && host.address.user.is_none() && host.address.port.is_none();
        if is_local {
            Self::Local { name: host.name, params: Box::new(host.params) }
        } else {
            Self::Remote(Box::new(host))
        }
    }
}

pub(super) fn resolve_hosts(host_options: &HostOptions) -> Result<RequestedHosts, SessionError> {
    let inventory = match &host_options.selection.inventory {
        None => Inventory::default(),
        Some(path) => {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(SessionError::file("read", path))?;
            Inventory::parse(&name, &text)?
        }
    };
    let mut hosts: Vec<RequestedHost> = Vec::new();
    if host_options.selection.hosts.is_empty() {
        hosts.extend(inventory.hosts().iter().cloned().map(RequestedHost::from));
    }
    if let Some(path) = host_options
        .selection
        .inventory
        .as_ref()
        .filter(|_| host_options.selection.hosts.is_empty() && hosts.is_empty())
    {
        return Err(HostError::EmptyInventory(path.clone()).into());
    }
    for word in &host_options.selection.hosts {
        match parse_local_name(word) {
            Some(name) => hosts.push(RequestedHost::Local { name, params: Box::default() }),
            None => {
                hosts.extend(inventory.select(std::slice::from_ref(word))?.into_iter().map(RequestedHost::from));
            }
        }
    }
    refuse_duplicates(&hosts)?;
    apply_params(&mut hosts, host_options)?;
    let name = |(name, members): (&WorkerName, &Vec<WorkerName>)| (name.to_string(), members.clone());
    Ok(RequestedHosts { hosts, groups: inventory.groups().iter().map(name).collect() })
}

/// Parses `local` or `NAME:local`, the forms that mean this machine.
fn parse_local_name(word: &str) -> Option<WorkerName> {
    let name = if word == LOCAL { LOCAL } else { word.strip_suffix(":local")? };
    WorkerName::new(name).ok()
}

/// Refuses two hosts with one name, and this machine under two names: its samples would disturb each other and count as
/// those of two machines.
fn refuse_duplicates(hosts: &[RequestedHost]) -> Result<(), HostError> {
    let duplicate =
        hosts.iter().enumerate().find(|(index, host)| hosts[..*index].iter().any(|it| it.name() == host.name()));
    if let Some((_, host)) = duplicate {
        return Err(HostError::DuplicateName(host.name().clone()));
    }
    let mut local_names = hosts.iter().filter_map(RequestedHost::local_name);
    match (local_names.next(), local_names.next()) {
        (Some(one), Some(other)) => Err(HostError::SameMachine(one.clone(), other.clone())),
        _ => Ok(()),
    }
}

/// Sets the parameters of hosts; --force-params overrides the inventory, which overrides run-perf's files.
fn apply_params(hosts: &mut [RequestedHost], host_options: &HostOptions) -> Result<(), SessionError> {
    let forced = host_options.force_params.as_deref().map(ForcedParams::parse).transpose()?.unwrap_or_default();
    let remote_hosts: Vec<Host> = hosts.iter().filter_map(RequestedHost::remote).cloned().collect();
    let implicit = hosts.is_empty().then(WorkerName::local);
    let local_names: Vec<&WorkerName> = hosts.iter().filter_map(RequestedHost::local_name).chain(&implicit).collect();
    let is_local =
        |name: &&str| local_names.iter().any(|local| local.as_str() == *name || LOOPBACK_ADDRESSES.contains(name));
    if let Some(unused) = forced.unmatched(&remote_hosts).find(|name| !is_local(name)) {
        return Err(HostError::UnknownForcedHost(unused.to_owned()).into());
    }
    for requested in hosts {
        match requested {
            RequestedHost::Local { name, params } => **params = local_params(host_options, name, params)?,
            RequestedHost::Remote(host) => {
                let file = read_host_file(&host.address.host, &host_options.paths)?.unwrap_or_default();
                host.params = file
                    .overridden_by(&host.params)
                    .overridden_by(&forced.params_for(host))
                    .overridden_by(&common_params(host_options));
            }
        }
    }
    Ok(())
}

fn common_params(host_options: &HostOptions) -> HostParams {
    HostParams {
        distro: host_options.distro.clone(),
        guest_distro: host_options.guest_distro.clone(),
        ..HostParams::default()
    }
}

/// The parameters of this machine where no host is requested.
pub(super) fn implicit_local_params(host_options: &HostOptions) -> Result<HostParams, SessionError> {
    local_params(host_options, &WorkerName::local(), &HostParams::default())
}

/// The parameters of this machine under a name: those of run-perf's files for its addresses, overridden by the declared
/// ones of the inventory, and these by --force-params.
fn local_params(
    host_options: &HostOptions,
    name: &WorkerName,
    declared: &HostParams,
) -> Result<HostParams, SessionError> {
    let forced = host_options.force_params.as_deref().map(ForcedParams::parse).transpose()?.unwrap_or_default();
    let mut params = HostParams::default();
    for address in LOOPBACK_ADDRESSES {
        params = params.overridden_by(&read_host_file(address, &host_options.paths)?.unwrap_or_default());
    }
    let names: Vec<&str> = [name.as_str()].into_iter().chain(LOOPBACK_ADDRESSES).collect();
    Ok(params
        .overridden_by(declared)
        .overridden_by(&forced.params_for_names(&names))
        .overridden_by(&common_params(host_options)))
}

/// Reports warnings about the connection to a host, and where it contradicts its declared parameters.
pub(super) async fn report_host(connected: &ConnectedHost, events: &EventSink) -> Result<(), SessionError> {
    for warning in &connected.warnings {
        events.emit_host(&connected.host.name, HostEvent::ConnectWarning(warning.clone()));
    }
    report_mismatches(&connected.worker, &connected.host.params, events).await
}

pub(super) async fn report_mismatches(
    worker: &Worker,
    params: &HostParams,
    events: &EventSink,
) -> Result<(), SessionError> {
    if *params != HostParams::default() {
        let found = HostParams::detect(worker).await?;
        let page_size = match params.hugepage_kb {
            Some(_) => params.page_size_mismatch(&HostParams::detect_page_sizes(worker).await),
            None => None,
        };
        for mismatch in params.mismatches(&found).into_iter().chain(page_size) {
            events.emit_host(worker.name(), HostEvent::ParamMismatch(mismatch));
        }
    }
    Ok(())
}

/// The address by which other hosts reach a host. They do not know the names of the ssh configuration here.
pub(super) fn data_address(connected: &ConnectedHost) -> String {
    let declared = connected.host.params.extra.get(DATA_ADDRESS).and_then(|value| value.as_str());
    declared.unwrap_or(&connected.network_name).to_owned()
}
