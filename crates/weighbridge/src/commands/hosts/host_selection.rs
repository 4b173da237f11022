//! Resolves --hosts and --inventory to hosts with their parameters.

use std::collections::BTreeMap;

use wb_fleet::inventory::{ForcedParams, read_host_file};
use wb_fleet::{ConnectedHost, Host, HostParams, Inventory};
use wb_model::WorkerName;

use crate::cli::HostFlags;
use crate::console::Console;
use crate::error::Error;

/// The name for this machine in a list of hosts.
const LOCAL: &str = "local";
/// Addresses that mean this machine in run-perf's files and options.
pub(crate) const LOOPBACK_ADDRESSES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Inventory key of the address by which other hosts reach a host, if different from its ssh address.
const DATA_ADDRESS: &str = "data-address";

/// A requested machine.
pub(super) enum RequestedHost {
    /// This machine, under a name.
    Local(WorkerName),
    /// Another machine.
    Remote(Box<Host>),
}

/// The requested machines, in order, and the groups of the inventory.
pub(super) struct RequestedHosts {
    pub(super) hosts: Vec<RequestedHost>,
    pub(super) groups: BTreeMap<String, Vec<WorkerName>>,
}

impl RequestedHosts {
    /// Whether this machine is one of them; it is if none was requested.
    pub(super) fn includes_local(&self) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|place| place.local_name().is_some())
    }
}

impl RequestedHost {
    pub(super) fn name(&self) -> &WorkerName {
        match self {
            Self::Local(name) => name,
            Self::Remote(host) => &host.name,
        }
    }

    pub(super) fn local_name(&self) -> Option<&WorkerName> {
        if let Self::Local(name) = self { Some(name) } else { None }
    }

    pub(super) fn remote(&self) -> Option<&Host> {
        if let Self::Remote(host) = self { Some(host) } else { None }
    }
}

/// Resolves the host flags.
pub(super) fn resolve_hosts(flags: &HostFlags) -> Result<RequestedHosts, Error> {
    let inventory = match &flags.selection.inventory {
        None => Inventory::default(),
        Some(path) => {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|source| Error::File { path: name.clone(), source })?;
            Inventory::parse(&name, &text)?
        }
    };
    let mut places: Vec<RequestedHost> = Vec::new();
    if flags.selection.hosts.is_empty() {
        places.extend(inventory.hosts().iter().cloned().map(Box::new).map(RequestedHost::Remote));
    }
    if let Some(path) =
        flags.selection.inventory.as_ref().filter(|_| flags.selection.hosts.is_empty() && places.is_empty())
    {
        let what = format!("the inventory {} has no hosts", path.display());
        return Err(Error::Usage {
            what,
            help: "`[hosts.NAME]` defines a host; docs/hosts.md has an example".to_owned(),
        });
    }
    for word in &flags.selection.hosts {
        match parse_local_name(word) {
            Some(name) => places.push(RequestedHost::Local(name)),
            None => places.extend(
                inventory.select(std::slice::from_ref(word))?.into_iter().map(Box::new).map(RequestedHost::Remote),
            ),
        }
    }
    require_unique_names(&places)?;
    require_single_local(&places)?;
    apply_params(&mut places, flags)?;
    let name = |(name, members): (&WorkerName, &Vec<WorkerName>)| (name.to_string(), members.clone());
    Ok(RequestedHosts { hosts: places, groups: inventory.groups().iter().map(name).collect() })
}

/// Parses `local` or `NAME:local`, the forms that mean this machine.
fn parse_local_name(word: &str) -> Option<WorkerName> {
    let name = if word == LOCAL { LOCAL } else { word.strip_suffix(":local")? };
    WorkerName::new(name).ok()
}

/// Refuses duplicate host names.
fn require_unique_names(places: &[RequestedHost]) -> Result<(), Error> {
    let duplicate =
        places.iter().enumerate().find(|(at, place)| places[..*at].iter().any(|it| it.name() == place.name()));
    let Some((_, place)) = duplicate else { return Ok(()) };
    let what = format!("duplicate host name `{}`", place.name());
    Err(Error::Usage { what, help: "give each host a unique name: `NAME:ADDRESS`".to_owned() })
}

/// Refuses this machine under two names: its samples would disturb each other and count as those of two machines.
fn require_single_local(places: &[RequestedHost]) -> Result<(), Error> {
    let mut here = places.iter().filter_map(RequestedHost::local_name);
    let (Some(one), Some(other)) = (here.next(), here.next()) else { return Ok(()) };
    let what = format!("`{one}` and `{other}` are both this machine");
    Err(Error::Usage { what, help: "name each machine once; `NAME:ADDRESS` names another machine".to_owned() })
}

/// Sets the parameters of hosts; --force-params overrides the inventory, which overrides run-perf's files.
fn apply_params(places: &mut [RequestedHost], flags: &HostFlags) -> Result<(), Error> {
    let forced = flags.force_params.as_deref().map(ForcedParams::parse).transpose()?.unwrap_or_default();
    let hosts: Vec<Host> = places.iter().filter_map(RequestedHost::remote).cloned().collect();
    let alone = places.is_empty().then(WorkerName::local);
    let here: Vec<&WorkerName> = places.iter().filter_map(RequestedHost::local_name).chain(&alone).collect();
    let is_here = |name: &&str| here.iter().any(|local| local.as_str() == *name || LOOPBACK_ADDRESSES.contains(name));
    if let Some(unused) = forced.unmatched(&hosts).find(|name| !is_here(name)) {
        let what = format!("--force-params names unknown host `{unused}`");
        return Err(Error::Usage { what, help: "use the name or address of a host of this run".to_owned() });
    }
    for place in places {
        let RequestedHost::Remote(host) = place else { continue };
        let file = read_host_file(&host.address.host, &flags.paths)?.unwrap_or_default();
        host.params = file
            .overridden_by(&host.params)
            .overridden_by(&forced.params_for(host))
            .overridden_by(&common_params(flags));
    }
    Ok(())
}

/// Parameters that flags set for all hosts.
fn common_params(flags: &HostFlags) -> HostParams {
    HostParams { distro: flags.distro.clone(), guest_distro: flags.guest_distro.clone(), ..HostParams::default() }
}

/// The parameters of this machine under a name, from run-perf's files for its addresses and --force-params.
pub(super) fn local_params(flags: &HostFlags, name: &WorkerName) -> Result<HostParams, Error> {
    let forced = flags.force_params.as_deref().map(ForcedParams::parse).transpose()?.unwrap_or_default();
    let mut params = HostParams::default();
    for address in LOOPBACK_ADDRESSES {
        params = params.overridden_by(&read_host_file(address, &flags.paths)?.unwrap_or_default());
    }
    let names: Vec<&str> = [name.as_str()].into_iter().chain(LOOPBACK_ADDRESSES).collect();
    Ok(params.overridden_by(&forced.params_for_names(&names)).overridden_by(&common_params(flags)))
}

/// Prints the notes of a connected host, and where it contradicts its declared parameters.
pub(super) async fn report_host(connected: &ConnectedHost, console: &Console) -> Result<(), Error> {
    if console.quiet {
        return Ok(());
    }
    let name = &connected.host.name;
    connected.warnings.iter().for_each(|note| crate::console::message!("note: `{name}` {note}"));
    if connected.host.params != HostParams::default() {
        let found = HostParams::detect(&connected.worker).await?;
        let contradictions = connected.host.params.mismatches(&found);
        contradictions.iter().for_each(|text| crate::console::message!("note: `{name}`: {text}"));
    }
    Ok(())
}

/// The address by which other hosts reach a host.
pub(super) fn data_address(host: &Host) -> String {
    let declared = host.params.extra.get(DATA_ADDRESS).and_then(|value| value.as_str());
    declared.unwrap_or(&host.address.host).to_owned()
}
