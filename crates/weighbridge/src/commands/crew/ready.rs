//! From flags to hosts that are ready for profiles and tests: provisioned, set up, rebooted.

use std::path::Path;

use tokio::sync::watch;
use wb_agent::PutBack;
use wb_model::Nanos;
use wb_profile::Controller;
use wb_profile::provision::Provisioner;
use wb_profile::script::Script;
use wb_run::Crew;
use wb_run::ready::{Desk, HostSetup, LeftOut, Told, Ways, provision, set_up_hosts, set_up_workers};

use super::hosts::{Asked, asked};
use super::{Hosts, assembled, kernels, options, program, targets};
use crate::cli::{HostFlags, ReadyFlags};
use crate::commands::this_program;
use crate::console::Console;
use crate::error::Error;

/// What is done to machines first.
pub(crate) struct Ready {
    provisioners: Vec<Provisioner>,
    host_script: Option<Script>,
    reboot: Option<Nanos>,
    worker_script: Option<Script>,
    limit: Nanos,
    /// How long a reboot may take.
    pub(crate) reboot_limit: Nanos,
}

impl Ready {
    /// Reads what was asked for.
    pub(crate) fn read(flags: &ReadyFlags) -> Result<Self, Error> {
        let usage = |what: String| Error::Usage { what, help: "docs/provisioning.md has all of it".to_owned() };
        let provisioner = |text: &String| text.parse::<Provisioner>().map_err(|error| usage(error.to_string()));
        let script = |given: &Option<String>| {
            let read = given.as_deref().map(Script::read).transpose();
            read.map_err(|error| usage(error.to_string()))
        };
        Ok(Self {
            provisioners: flags.provisioner.iter().map(provisioner).collect::<Result<_, _>>()?,
            host_script: script(&flags.host_setup_script)?,
            reboot: flags.host_setup_script_reboot.then_some(flags.reboot_limit),
            worker_script: script(&flags.worker_setup_script)?,
            limit: flags.script_limit,
            reboot_limit: flags.reboot_limit,
        })
    }

    /// Runs the script of workers on these: hosts, or guests that came to be since.
    pub(crate) async fn set_up_workers(&self, folder: &Path, crew: &mut Crew) -> Result<(), Error> {
        if let Some(script) = &self.worker_script {
            set_up_workers(folder, script, self.limit, crew, &mut tell).await?;
        }
        require_some(crew)
    }
}

/// The hosts that were asked for, made ready. What is done to them is recorded in the run's folder.
pub(crate) async fn made_ready(
    ready: &Ready,
    flags: &HostFlags,
    folder: &Path,
    console: &Console,
    mut cancel: watch::Receiver<bool>,
) -> Result<Hosts, Error> {
    tokio::select! {
        hosts = assembled_ready(ready, flags, folder, console) => hosts,
        // What is going on ends with its handles.
        Ok(_) = cancel.wait_for(|cancelled| *cancelled) => Err(Error::Interrupted),
    }
}

async fn assembled_ready(ready: &Ready, flags: &HostFlags, folder: &Path, console: &Console) -> Result<Hosts, Error> {
    let asked = asked(flags)?;
    require_others(ready, &asked)?;
    let left_out = match ready.provisioners.is_empty() {
        true => LeftOut::new(),
        false => provisioned(ready, &asked, flags, folder).await?,
    };
    let mut hosts = assembled(asked, left_out, flags, console).await?;
    require_some(&hosts.crew)?;
    tell_left_behind(&hosts).await?;
    if let Some(script) = &ready.host_script {
        let setup = HostSetup { script, limit: ready.limit, reboot: ready.reboot };
        let (program, options) = (program()?, options(flags));
        let ways = Ways { hosts: &hosts.others, program: &program, options: &options };
        set_up_hosts(folder, &setup, &ways, &mut hosts.crew, &mut tell).await?;
        require_some(&hosts.crew)?;
    }
    Ok(hosts)
}

/// Tells what runs that were killed had left changed on other hosts. Of this machine its agent tells.
async fn tell_left_behind(hosts: &Hosts) -> Result<(), Error> {
    for host in &hosts.others {
        let Some(member) = hosts.crew.members.iter().find(|member| *member.worker.name() == host.name) else {
            continue;
        };
        let left = member.worker.left_behind().await?;
        for PutBack { what, how } in left.put_back {
            crate::console::tell!("note: `{}`: a run that was killed had changed {what}: {how}", host.name);
        }
        if let Some(fault) = left.fault {
            crate::console::tell!("warning: `{}`: {fault}", host.name);
            crate::console::tell!("help: what is measured there may not be what the host is like by itself");
        }
    }
    Ok(())
}

async fn provisioned(ready: &Ready, asked: &Asked, flags: &HostFlags, folder: &Path) -> Result<LeftOut, Error> {
    let controller = Controller::start(&this_program()?).await?;
    let ssh_config = flags.machines.ssh_config.as_deref();
    let mut left_out = LeftOut::new();
    let targets = targets::of(asked, &ready.provisioners, flags, &controller).await?;
    let desk = Desk { controller: &controller, ssh_config };
    let came = provision(folder, &ready.provisioners, &targets, &desk, &mut tell).await;
    controller.close().await?;
    left_out.extend(came?);
    Ok(left_out)
}

/// Refuses to reboot this machine, before anything is done.
fn require_others(ready: &Ready, asked: &Asked) -> Result<(), Error> {
    if ready.reboot.is_none() || !asked.is_here() {
        return Ok(());
    }
    Err(kernels::would_reboot("--host-setup-script-reboot".to_owned()))
}

/// Where nobody is left, there is nothing to measure on.
fn require_some(crew: &Crew) -> Result<(), Error> {
    match crew.members.is_empty() {
        false => Ok(()),
        true => Err(Error::FellShort {
            what: "no host is ready to be measured".to_owned(),
            help: "what was done is in the run folder; the same line tries again what failed".to_owned(),
        }),
    }
}

pub(super) fn tell(told: Told) {
    match told {
        Told::Note(text) => crate::console::tell!("{text}"),
        Told::LeftOut { what, help } => {
            crate::console::tell!("warning: {what}");
            help.iter().for_each(|help| crate::console::tell!("help: {help}"));
        }
    }
}
