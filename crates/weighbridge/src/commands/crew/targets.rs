//! Hosts as provisioners see them, with what nobody said of them found out where a provisioner wants it.

use std::collections::BTreeMap;

use wb_agent::Worker;
use wb_fleet::{Params, connect};
use wb_model::Nanos;
use wb_profile::Controller;
use wb_profile::controller::Program;
use wb_profile::provision::{Asks, Provisioner, Target};

use super::hosts::{Asked, Place, params_here};
use super::{local, options, program};
use crate::cli::HostFlags;
use crate::error::Error;

/// How long ssh may take to say what its configuration says.
const ASKING: Nanos = Nanos(10_000_000_000);

/// The hosts that were asked for.
pub(super) async fn of(
    asked: &Asked,
    provisioners: &[Provisioner],
    flags: &HostFlags,
    controller: &Controller,
) -> Result<Vec<Target>, Error> {
    let all = provisioners.iter().map(Provisioner::asks);
    let asks = all
        .fold(Asks::default(), |all, one| Asks { login: all.login || one.login, machine: all.machine || one.machine });
    let alone = [Place::Here(wb_model::WorkerName::local())];
    let places = if asked.places.is_empty() { &alone[..] } else { &asked.places[..] };
    let mut targets = Vec::new();
    for place in places {
        let mut target = match place {
            Place::Here(name) => Target::here(name.clone(), params_here(flags, name)?),
            Place::There(host) => Target::there(host),
        };
        let lacks = target.lacks(asks);
        if lacks.login && !target.local {
            know_login(&mut target, place, flags, controller).await?;
        }
        if lacks.machine {
            know_machine(&mut target, place, flags).await?;
        }
        targets.push(target);
    }
    Ok(targets)
}

/// User and port, as ssh's configuration has them.
async fn know_login(
    target: &mut Target,
    place: &Place,
    flags: &HostFlags,
    controller: &Controller,
) -> Result<(), Error> {
    let Some(host) = place.there() else { return Ok(()) };
    let mut argv = vec!["ssh".to_owned()];
    argv.extend(flags.machines.ssh_config.iter().flat_map(|config| ["-F".to_owned(), config.display().to_string()]));
    argv.push("-G".to_owned());
    argv.extend(host.address.arguments());
    let ended = controller.run(Program { argv, ..Program::default() }, ASKING, |_| {}).await?;
    let text = String::from_utf8_lossy(&ended.stdout);
    let said: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    target.user = target.user.take().or(said.get("user").map(|user| (*user).to_owned()));
    target.port = target.port.or(said.get("port").and_then(|port| port.parse().ok()));
    Ok(())
}

/// Architecture and distribution, as the machine has them; nothing where there is no way to it yet.
async fn know_machine(target: &mut Target, place: &Place, flags: &HostFlags) -> Result<(), Error> {
    let worker: Worker = match place {
        Place::Here(_) => local().await?,
        Place::There(host) => match connect(host, &program()?, &options(flags)).await {
            Ok(connected) => connected.worker,
            Err(_) => return Ok(()),
        },
    };
    let found = Params::detect(&worker).await?;
    worker.close().await?;
    target.distro = target.distro.take().or(found.distro);
    target.params.arch = target.params.arch.take().or(found.arch);
    Ok(())
}
