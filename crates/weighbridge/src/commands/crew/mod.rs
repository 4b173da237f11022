//! From flags to the workers of a run, and their end.

mod hosts;
mod kernels;
mod ready;
mod restart;
mod state;
mod targets;
mod transfer;

use std::collections::BTreeMap;
use std::path::PathBuf;

use wb_agent::{Worker, WorkerError};
use wb_fleet::{Address, FleetError, Host, Inventory, Options, Params, Program, connect_all};
use wb_model::WorkerName;
use wb_model::secrets::masked_fields;
use wb_run::{Crew, Member};

use self::hosts::{Asked, Place, asked};
use super::this_program;
use crate::cli::{HostFlags, MachineFlags};
use crate::console::Console;
use crate::error::Error;

pub(crate) use self::hosts::LOOPBACK_ADDRESSES;
pub(crate) use self::kernels::{kernels_back, require_elsewhere, start_kernels};
pub(crate) use self::ready::{Ready, leave_out_changed, made_ready, report_all_left_behind};
pub(crate) use self::state::{State, Unmet, localhost, preflights, profiles, put, shelf};

/// By which workers of one machine reach each other.
const LOOPBACK: &str = "127.0.0.1";

/// The machines that were asked for, and what is known of them.
pub(crate) struct Hosts {
    /// Their workers.
    pub(crate) crew: Crew,
    reached: BTreeMap<WorkerName, Reached>,
    /// Those that are not this machine.
    others: Vec<Host>,
    /// How those are connected to.
    options: Options,
}

/// How a machine was reached, and what is said of it.
#[derive(Default)]
struct Reached {
    params: Params,
    /// None where it is this one.
    address: Option<Address>,
}

impl Hosts {
    /// What is said of those where anything is, as it is recorded: how each is reached, and its parameters.
    pub(crate) fn said(&self) -> BTreeMap<WorkerName, serde_json::Value> {
        let of = |(name, Reached { params, address }): (&WorkerName, &Reached)| {
            let address = address.as_ref().map(Address::to_string);
            let says_nothing = address.is_none() && *params == Params::default();
            let recorded =
                || serde_json::json!({ "address": address, "params": masked_fields(serde_json::json!(params)) });
            (!says_nothing).then(|| (name.clone(), recorded()))
        };
        self.reached.iter().filter_map(of).collect()
    }

    /// The options by which a command line means one of them alone, as these flags mean it: a word of `--hosts` that has
    /// its address, or its name in the inventory. None where it is the machine of this process.
    pub(crate) fn options_for(&self, name: &WorkerName, flags: &MachineFlags) -> Vec<String> {
        let Some(address) = self.reached.get(name).and_then(|reached| reached.address.as_ref()) else {
            return Vec::new();
        };
        let file = |flag: &str, path: &Option<PathBuf>| {
            let path = path.as_ref().map(|path| path.display().to_string());
            path.map_or_else(Vec::new, |path| vec![flag.to_owned(), path])
        };
        let means_it = |word: &&String| {
            let alone = Inventory::default().select(std::slice::from_ref(*word));
            alone.is_ok_and(|hosts| hosts.iter().any(|host| host.name == *name && host.address == *address))
        };
        let (inventory, word) = match flags.hosts.iter().find(means_it) {
            Some(word) => (Vec::new(), word.clone()),
            None => (file("--inventory", &flags.inventory), name.to_string()),
        };
        let hosts = vec!["--hosts".to_owned(), word];
        [inventory, hosts, file("--ssh-config", &flags.ssh_config)].concat()
    }

    /// Each, with how it was reached.
    fn all(&self) -> impl Iterator<Item = (&Member, &Reached)> {
        self.crew.members.iter().filter_map(|member| Some((member, self.reached.get(member.worker.name())?)))
    }
}

/// The workers that were asked for; this machine where none was. A host to which there is no way is told, and is no
/// reason not to measure on the others.
pub(crate) async fn hosts(flags: &HostFlags, console: &Console) -> Result<Hosts, Error> {
    assembled(asked(flags)?, BTreeMap::new(), flags, console).await
}

/// The workers of these places, but for those that are left out already.
async fn assembled(
    asked: Asked,
    absent: BTreeMap<WorkerName, String>,
    flags: &HostFlags,
    console: &Console,
) -> Result<Hosts, Error> {
    let Asked { places, groups } = asked;
    if places.is_empty() {
        let reached = BTreeMap::from([(WorkerName::local(), of_this_machine(flags, &WorkerName::local())?)]);
        let crew = match absent.is_empty() {
            true => Crew::alone(Member::of(local().await?).await?),
            false => Crew { absent, ..Crew::default() },
        };
        return Ok(Hosts { crew, reached, others: Vec::new(), options: options(flags) });
    }
    let mut crew = Crew { groups, absent, ..Crew::default() };
    let mut reached = BTreeMap::new();
    let places: Vec<Place> = places.into_iter().filter(|place| !crew.absent.contains_key(place.name())).collect();
    let all_here = places.iter().all(|place| matches!(place, Place::Here(_)));
    for name in places.iter().filter_map(Place::here) {
        let worker = Worker::here(name.clone(), &this_program()?).await?;
        let address = all_here.then(|| LOOPBACK.to_owned());
        crew.members.push(Member { address, ..Member::of(worker).await? });
        reached.insert(name.clone(), of_this_machine(flags, name)?);
    }
    let others: Vec<Host> = places.iter().filter_map(Place::there).cloned().collect();
    for host in &others {
        let address = Some(host.address.clone());
        reached.insert(host.name.clone(), Reached { params: host.params.clone(), address });
    }
    reach(&mut crew, &others, flags, console).await?;
    // In the order in which they were asked for: roles follow it.
    let place_of = |name: &WorkerName| places.iter().position(|place| place.name() == name);
    crew.members.sort_by_key(|member| place_of(member.worker.name()));
    Ok(Hosts { crew, reached, others, options: options(flags) })
}

/// What is said of this machine.
fn of_this_machine(flags: &HostFlags, name: &WorkerName) -> Result<Reached, Error> {
    Ok(Reached { params: hosts::params_here(flags, name)?, address: None })
}

/// How hosts are connected to.
fn options(flags: &HostFlags) -> Options {
    Options { ssh_config: flags.machines.ssh_config.clone(), ..Options::default() }
}

/// This program, as it is put on hosts.
fn program() -> Result<Program, Error> {
    let path = this_program()?;
    Program::read(&path).map_err(|source| Error::File { path: path.display().to_string(), source })
}

/// Connects to the hosts that are not this machine, all at once.
async fn reach(crew: &mut Crew, hosts: &[Host], flags: &HostFlags, console: &Console) -> Result<(), Error> {
    if hosts.is_empty() {
        return Ok(());
    }
    let mut failed = Vec::new();
    let options = Options { progress: transfer::progress(console), ..options(flags) };
    for connected in connect_all(hosts, &program()?, &options).await {
        match connected {
            Ok(connected) => {
                hosts::tell(&connected, console).await?;
                let address = Some(hosts::data_address(&connected.host));
                crew.members.push(Member { address, ..Member::of(connected.worker).await? });
            }
            Err(error) => {
                crew.absent.insert(error.host.clone(), error.to_string());
                failed.push(error);
            }
        }
    }
    // Where nobody is left, the last of them ends it.
    let last = if crew.members.is_empty() { failed.pop() } else { None };
    failed.iter().for_each(warn);
    last.map_or(Ok(()), |error| Err(error.into()))
}

/// Tells of a host to which there is no way.
fn warn(error: &FleetError) {
    crate::console::tell!("warning: {error}");
    if let Some(help) = error.help() {
        crate::console::tell!("help: {help}");
    }
}

/// This machine as a worker.
pub(crate) async fn local() -> Result<Worker, Error> {
    Ok(Worker::local(&this_program()?).await?)
}

/// Ends the agents of all workers; the first that did not end well. Of one that is lost the run has told. What an agent that
/// was killed has left is removed by another one.
pub(crate) async fn close(mut hosts: Hosts) -> Result<(), WorkerError> {
    let mut all = Ok(());
    for Member { worker, .. } in std::mem::take(&mut hosts.crew.members) {
        let (name, changed) = (worker.name().clone(), worker.changed());
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
