//! Hosts as provisioners see them, with what nobody said of them found out where a provisioner wants it.

use std::collections::BTreeMap;

use wb_agent::Worker;
use wb_fleet::{HostParams, connect};
use wb_model::Nanos;
use wb_profile::Controller;
use wb_profile::controller::ControllerProgram;
use wb_profile::provision::{ProvisionTarget, Provisioner, RequiredFacts};

use super::host_selection::{RequestedHost, RequestedHosts, local_params};
use super::{connect_options, local_worker, read_program};
use crate::cli::HostFlags;
use crate::error::Error;

/// How long ssh may take to say what its configuration says.
const SSH_CONFIG_TIMEOUT: Nanos = Nanos(10_000_000_000);

/// The hosts that were asked for.
pub(super) async fn resolve_targets(
    asked: &RequestedHosts,
    provisioners: &[Provisioner],
    flags: &HostFlags,
    controller: &Controller,
) -> Result<Vec<ProvisionTarget>, Error> {
    let all = provisioners.iter().map(Provisioner::required_facts);
    let asks = all.fold(RequiredFacts::default(), |all, one| RequiredFacts {
        login: all.login || one.login,
        machine: all.machine || one.machine,
    });
    let alone = [RequestedHost::Local(wb_model::WorkerName::local())];
    let places = if asked.hosts.is_empty() { &alone[..] } else { &asked.hosts[..] };
    let mut targets = Vec::new();
    for place in places {
        let mut target = match place {
            RequestedHost::Local(name) => ProvisionTarget::local(name.clone(), local_params(flags, name)?),
            RequestedHost::Remote(host) => ProvisionTarget::remote(host),
        };
        let lacks = target.missing_facts(asks);
        if lacks.login && !target.local {
            fill_login(&mut target, place, flags, controller).await?;
        }
        if lacks.machine {
            fill_machine(&mut target, place, flags).await?;
        }
        targets.push(target);
    }
    Ok(targets)
}

/// User and port, as ssh's configuration has them.
async fn fill_login(
    target: &mut ProvisionTarget,
    place: &RequestedHost,
    flags: &HostFlags,
    controller: &Controller,
) -> Result<(), Error> {
    let Some(host) = place.remote() else { return Ok(()) };
    let mut argv = vec!["ssh".to_owned()];
    argv.extend(flags.selection.ssh_config.iter().flat_map(|config| ["-F".to_owned(), config.display().to_string()]));
    argv.push("-G".to_owned());
    argv.extend(host.address.arguments());
    let ended =
        controller.run(ControllerProgram { argv, ..ControllerProgram::default() }, SSH_CONFIG_TIMEOUT, |_| {}).await?;
    let text = String::from_utf8_lossy(&ended.stdout);
    let said: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    target.user = target.user.take().or(said.get("user").map(|user| (*user).to_owned()));
    target.port = target.port.or(said.get("port").and_then(|port| port.parse().ok()));
    Ok(())
}

/// Architecture and distribution, as the machine has them; nothing where there is no way to it yet.
async fn fill_machine(target: &mut ProvisionTarget, place: &RequestedHost, flags: &HostFlags) -> Result<(), Error> {
    let worker: Worker = match place {
        RequestedHost::Local(_) => local_worker().await?,
        RequestedHost::Remote(host) => match connect(host, &read_program()?, &connect_options(flags)).await {
            Ok(connected) => connected.worker,
            Err(_) => return Ok(()),
        },
    };
    let found = HostParams::detect(&worker).await?;
    worker.close().await?;
    target.distro = target.distro.take().or(found.distro);
    target.params.arch = target.params.arch.take().or(found.arch);
    Ok(())
}
