//! Builds provisioning targets from hosts, detecting the missing values that a provisioner needs.

use std::collections::BTreeMap;

use wb_agent::Worker;
use wb_fleet::{HostParams, connect};
use wb_model::Nanos;
use wb_profile::Controller;
use wb_profile::controller::ControllerProgram;
use wb_profile::provision::{ProvisionTarget, Provisioner, RequiredFacts};

use super::host_selection::{RequestedHost, RequestedHosts, implicit_local_params};
use super::{connect_options, local_worker};
use crate::error::SessionError;
use crate::options::HostOptions;
use crate::worker_program::read_worker_program;

/// Time limit for `ssh -G`, which prints the effective configuration.
const SSH_CONFIG_TIMEOUT: Nanos = Nanos(10_000_000_000);

pub(super) async fn resolve_targets(
    requested: &RequestedHosts,
    provisioners: &[Provisioner],
    host_options: &HostOptions,
    controller: &Controller,
) -> Result<Vec<ProvisionTarget>, SessionError> {
    let all = provisioners.iter().map(Provisioner::required_facts);
    let asks = all.fold(RequiredFacts::default(), |all, one| RequiredFacts {
        login: all.login || one.login,
        machine: all.machine || one.machine,
    });
    let alone = RequestedHost::Local {
        name: wb_model::WorkerName::local(),
        params: Box::new(implicit_local_params(host_options)?),
    };
    let places = if requested.hosts.is_empty() { std::slice::from_ref(&alone) } else { &requested.hosts[..] };
    let mut targets = Vec::new();
    for place in places {
        let mut target = match place {
            RequestedHost::Local { name, params } => ProvisionTarget::local(name.clone(), (**params).clone()),
            RequestedHost::Remote(host) => ProvisionTarget::remote(host),
        };
        let lacks = target.missing_facts(asks);
        if lacks.login && !target.local {
            fill_login(&mut target, place, host_options, controller).await?;
        }
        if lacks.machine {
            fill_machine(&mut target, place, host_options).await?;
        }
        targets.push(target);
    }
    Ok(targets)
}

async fn fill_login(
    target: &mut ProvisionTarget,
    place: &RequestedHost,
    host_options: &HostOptions,
    controller: &Controller,
) -> Result<(), SessionError> {
    let Some(host) = place.remote() else { return Ok(()) };
    let mut argv = vec!["ssh".to_owned()];
    argv.extend(
        host_options.selection.ssh_config.iter().flat_map(|config| ["-F".to_owned(), config.display().to_string()]),
    );
    argv.push("-G".to_owned());
    argv.extend(host.address.arguments());
    let output =
        controller.run(ControllerProgram { argv, ..ControllerProgram::default() }, SSH_CONFIG_TIMEOUT, |_| {}).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let config: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    target.user = target.user.take().or(config.get("user").map(|user| (*user).to_owned()));
    target.port = target.port.or(config.get("port").and_then(|port| port.parse().ok()));
    Ok(())
}

/// Fills in architecture and distribution as detected on the machine; nothing if it is not reachable yet.
async fn fill_machine(
    target: &mut ProvisionTarget,
    place: &RequestedHost,
    host_options: &HostOptions,
) -> Result<(), SessionError> {
    let worker: Worker = match place {
        RequestedHost::Local { .. } => local_worker().await?,
        RequestedHost::Remote(host) => {
            match connect(host, &read_worker_program()?, &connect_options(host_options)).await {
                Ok(connected) => connected.worker,
                Err(_) => return Ok(()),
            }
        }
    };
    let detected = HostParams::detect(&worker).await?;
    worker.close().await?;
    target.distro = target.distro.take().or(detected.distro);
    target.params.arch = target.params.arch.take().or(detected.arch);
    Ok(())
}
