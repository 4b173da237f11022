//! Which hosts are meant, and what is to be said of them.

use std::collections::BTreeMap;

use wb_fleet::inventory::{ForcedParams, read_host_file};
use wb_fleet::{ConnectedHost, Host, HostParams, Inventory};
use wb_model::WorkerName;

use crate::cli::HostFlags;
use crate::console::Console;
use crate::error::Error;

/// The address of this machine among hosts.
const LOCAL: &str = "local";
/// The addresses that are this machine wherever run-perf's files and options name hosts.
pub(crate) const LOOPBACK_ADDRESSES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// By this name an inventory says by which address other hosts reach one, where that is not the one that ssh takes.
const DATA_ADDRESS: &str = "data-address";

/// A machine that was asked for.
pub(super) enum RequestedHost {
    /// This one, under a name.
    Local(WorkerName),
    /// Another one.
    Remote(Box<Host>),
}

/// The machines that were asked for, in order, and groups of them.
pub(super) struct RequestedHosts {
    pub(super) hosts: Vec<RequestedHost>,
    pub(super) groups: BTreeMap<String, Vec<WorkerName>>,
}

impl RequestedHosts {
    /// Whether this machine is one of them.
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

/// Reads what was asked for.
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
        return Err(Error::Usage { what, help: "`[hosts.NAME]` is one; docs/hosts.md has an example".to_owned() });
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

/// The name under which a word means this machine.
fn parse_local_name(word: &str) -> Option<WorkerName> {
    let name = if word == LOCAL { LOCAL } else { word.strip_suffix(":local")? };
    WorkerName::new(name).ok()
}

/// Each host has a name of its own.
fn require_unique_names(places: &[RequestedHost]) -> Result<(), Error> {
    let twice = places.iter().enumerate().find(|(at, place)| places[..*at].iter().any(|it| it.name() == place.name()));
    let Some((_, place)) = twice else { return Ok(()) };
    let what = format!("two hosts are called `{}`", place.name());
    Err(Error::Usage { what, help: "give each a name of its own: `NAME:ADDRESS`".to_owned() })
}

/// This machine has one name: as two workers its samples would disturb each other and count as those of two machines.
fn require_single_local(places: &[RequestedHost]) -> Result<(), Error> {
    let mut here = places.iter().filter_map(RequestedHost::local_name);
    let (Some(one), Some(other)) = (here.next(), here.next()) else { return Ok(()) };
    let what = format!("`{one}` and `{other}` are the same machine: this one");
    Err(Error::Usage { what, help: "name each machine once; `NAME:ADDRESS` is another one".to_owned() })
}

/// What is said of hosts: what is forced before the inventory, and that before run-perf's files.
fn apply_params(places: &mut [RequestedHost], flags: &HostFlags) -> Result<(), Error> {
    let forced = flags.force_params.as_deref().map(ForcedParams::parse).transpose()?.unwrap_or_default();
    let hosts: Vec<Host> = places.iter().filter_map(RequestedHost::remote).cloned().collect();
    let alone = places.is_empty().then(WorkerName::local);
    let here: Vec<&WorkerName> = places.iter().filter_map(RequestedHost::local_name).chain(&alone).collect();
    let is_here = |name: &&str| here.iter().any(|known| known.as_str() == *name || LOOPBACK_ADDRESSES.contains(name));
    if let Some(unused) = forced.unmatched(&hosts).find(|name| !is_here(name)) {
        let what = format!("--force-params says something of `{unused}`, which is none of the hosts");
        return Err(Error::Usage { what, help: "hosts are meant by their names or addresses".to_owned() });
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

/// What flags say of every host.
fn common_params(flags: &HostFlags) -> HostParams {
    HostParams { distro: flags.distro.clone(), guest_distro: flags.guest_distro.clone(), ..HostParams::default() }
}

/// The parameters of this machine, under a name: of run-perf's files for its addresses, and what is forced.
pub(super) fn local_params(flags: &HostFlags, name: &WorkerName) -> Result<HostParams, Error> {
    let forced = flags.force_params.as_deref().map(ForcedParams::parse).transpose()?.unwrap_or_default();
    let mut params = HostParams::default();
    for address in LOOPBACK_ADDRESSES {
        params = params.overridden_by(&read_host_file(address, &flags.paths)?.unwrap_or_default());
    }
    let names: Vec<&str> = [name.as_str()].into_iter().chain(LOOPBACK_ADDRESSES).collect();
    Ok(params.overridden_by(&forced.params_for_names(&names)).overridden_by(&common_params(flags)))
}

/// Says what there is to say of a host: what its user should know, and where it is not as was said.
pub(super) async fn report_host(connected: &ConnectedHost, console: &Console) -> Result<(), Error> {
    if console.quiet {
        return Ok(());
    }
    let name = &connected.host.name;
    connected.warnings.iter().for_each(|note| crate::console::tell!("note: `{name}` {note}"));
    if connected.host.params != HostParams::default() {
        let found = HostParams::detect(&connected.worker).await?;
        let contradictions = connected.host.params.mismatches(&found);
        contradictions.iter().for_each(|other| crate::console::tell!("note: `{name}`: {other}"));
    }
    Ok(())
}

/// By which address other hosts reach one.
pub(super) fn data_address(host: &Host) -> String {
    let said = host.params.extra.get(DATA_ADDRESS).and_then(|value| value.as_str());
    said.unwrap_or(&host.address.host).to_owned()
}
