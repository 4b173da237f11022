//! From flags to hosts that are ready for profiles and tests: provisioned, set up, rebooted.

use std::path::Path;

use tokio::sync::watch;
use wb_agent::{RecoveryReport, RestoredChange};
use wb_model::{Nanos, WorkerName};
use wb_profile::Controller;
use wb_profile::provision::Provisioner;
use wb_profile::script::Script;
use wb_run::WorkerPool;
use wb_run::preparation::{
    ConnectContext, ExcludedHosts, HostSetup, ProvisionContext, SetupEvent, provision, set_up_hosts, set_up_workers,
};

use super::host_selection::{RequestedHosts, resolve_hosts};
use super::{ConnectedHosts, connect_options, connect_requested, kernel_arguments, read_program, targets};
use crate::cli::{HostFlags, PreparationFlags};
use crate::commands::current_program;
use crate::console::Console;
use crate::error::Error;

/// What is done to machines first.
pub(crate) struct HostPreparation {
    provisioners: Vec<Provisioner>,
    host_scripts: Vec<Script>,
    reboot: Option<Nanos>,
    worker_scripts: Vec<Script>,
    limit: Nanos,
    /// How long a reboot may take.
    pub(crate) reboot_limit: Nanos,
}

impl HostPreparation {
    /// Reads what was asked for.
    pub(crate) fn from_flags(flags: &PreparationFlags) -> Result<Self, Error> {
        let usage = |what: String| Error::Usage { what, help: "docs/provisioning.md has all of it".to_owned() };
        let provisioner = |text: &String| text.parse::<Provisioner>().map_err(|error| usage(error.to_string()));
        let scripts = |given: &Option<String>, packages: &[String]| {
            let read = given.as_deref().map(Script::read).transpose();
            let install = (!packages.is_empty()).then(|| Script::install_packages(packages));
            let all = read.map(|script| script.into_iter().chain(install).collect());
            all.map_err(|error| usage(error.to_string()))
        };
        let provisioners = flags.provisioner.iter().map(provisioner).collect::<Result<Vec<_>, _>>()?;
        provisioners.iter().try_for_each(Provisioner::require_program).map_err(wb_run::RunError::from)?;
        Ok(Self {
            provisioners,
            host_scripts: scripts(&flags.host_setup_script, &flags.host_rpms)?,
            reboot: flags.host_setup_script_reboot.then_some(flags.reboot_limit),
            worker_scripts: scripts(&flags.worker_setup_script, &flags.worker_rpms)?,
            limit: flags.script_limit,
            reboot_limit: flags.reboot_limit,
        })
    }

    /// Runs the scripts of workers on these: hosts, or guests that came to be since.
    pub(crate) async fn set_up_workers(&self, folder: &Path, crew: &mut WorkerPool) -> Result<(), Error> {
        for script in &self.worker_scripts {
            set_up_workers(folder, script, self.limit, crew, &mut print_event).await?;
        }
        require_any_host(crew)
    }
}

/// The hosts that were asked for, made ready. What is done to them is recorded in the run's folder.
pub(crate) async fn prepare_hosts(
    ready: &HostPreparation,
    flags: &HostFlags,
    folder: &Path,
    console: &Console,
    mut cancel: watch::Receiver<bool>,
) -> Result<ConnectedHosts, Error> {
    tokio::select! {
        hosts = run_preparation(ready, flags, folder, console) => hosts,
        // What is going on ends with its handles.
        Ok(_) = cancel.wait_for(|cancelled| *cancelled) => Err(Error::Interrupted),
    }
}

async fn run_preparation(
    ready: &HostPreparation,
    flags: &HostFlags,
    folder: &Path,
    console: &Console,
) -> Result<ConnectedHosts, Error> {
    let asked = resolve_hosts(flags)?;
    refuse_local_reboot(ready, &asked)?;
    let left_out = match ready.provisioners.is_empty() {
        true => ExcludedHosts::new(),
        false => provision_hosts(ready, &asked, flags, folder).await?,
    };
    let mut hosts = connect_requested(asked, left_out, flags, console).await?;
    require_any_host(&hosts.pool)?;
    exclude_changed_hosts(&mut hosts).await?;
    for (at, script) in ready.host_scripts.iter().enumerate() {
        let is_last = at + 1 == ready.host_scripts.len();
        let setup = HostSetup { script, limit: ready.limit, reboot: ready.reboot.filter(|_| is_last) };
        let (program, options) = (read_program()?, connect_options(flags));
        let ways = ConnectContext { hosts: &hosts.remotes, program: &program, options: &options };
        set_up_hosts(folder, &setup, &ways, &mut hosts.pool, &mut print_event).await?;
        require_any_host(&hosts.pool)?;
    }
    Ok(hosts)
}

/// Leaves out the hosts on which something of a run is still changed, since they are not what they would be described as;
/// reports what runs that were killed had left on the others. Of this machine its agent reports that.
///
/// # Errors
/// When no other host is left.
pub(crate) async fn exclude_changed_hosts(hosts: &mut ConnectedHosts) -> Result<(), Error> {
    report_all_left_behind(hosts).await?;
    let mut last = None;
    for member in hosts.pool.workers.clone() {
        let name = member.worker.name().clone();
        if let Some(still) = member.worker.recovery_report().await?.unreverted {
            hosts.pool.remove(&name, still.to_string());
            // Nothing was done with it: how it ends is of no interest.
            let _ = member.worker.close().await;
            if let Some(error) = last.replace(Error::StillChanged { host: name, still }) {
                error.warn();
            }
        }
    }
    match last {
        Some(error) if hosts.pool.workers.is_empty() => Err(error),
        last => {
            last.iter().for_each(Error::warn);
            Ok(())
        }
    }
}

/// Reports what runs that were killed had left changed on hosts, and their agents have put back at their start. Of this
/// machine its agent reports that.
pub(crate) async fn report_all_left_behind(hosts: &ConnectedHosts) -> Result<(), Error> {
    for member in &hosts.pool.workers {
        let name = member.worker.name();
        if hosts.remotes.iter().any(|host| host.name == *name) {
            report_left_behind(name, &member.worker.recovery_report().await?);
        }
    }
    Ok(())
}

/// Reports what runs that were killed had left changed on a host.
pub(super) fn report_left_behind(host: &WorkerName, left: &RecoveryReport) {
    for RestoredChange { what, outcome: how } in &left.reverted {
        crate::console::tell!("note: `{host}`: a run that was killed had changed {what}: {how}");
    }
    if let Some(fault) = &left.fault {
        crate::console::tell!("warning: `{host}`: {fault}");
        crate::console::tell!("help: what is measured there may not be what the host is like by itself");
    }
}

async fn provision_hosts(
    ready: &HostPreparation,
    asked: &RequestedHosts,
    flags: &HostFlags,
    folder: &Path,
) -> Result<ExcludedHosts, Error> {
    let controller = Controller::start(&current_program()?).await?;
    let ssh_config = flags.selection.ssh_config.as_deref();
    let mut left_out = ExcludedHosts::new();
    let targets = targets::resolve_targets(asked, &ready.provisioners, flags, &controller).await?;
    let desk = ProvisionContext { controller: &controller, ssh_config };
    let came = provision(folder, &ready.provisioners, &targets, &desk, &mut print_event).await;
    controller.close().await?;
    left_out.extend(came?);
    Ok(left_out)
}

/// Refuses to reboot this machine, before anything is done.
fn refuse_local_reboot(ready: &HostPreparation, asked: &RequestedHosts) -> Result<(), Error> {
    if ready.reboot.is_none() || !asked.includes_local() {
        return Ok(());
    }
    Err(kernel_arguments::local_reboot_error("--host-setup-script-reboot".to_owned()))
}

/// Where nobody is left, there is nothing to measure on.
fn require_any_host(crew: &WorkerPool) -> Result<(), Error> {
    match crew.workers.is_empty() {
        false => Ok(()),
        true => Err(Error::Incomplete {
            what: "no host is ready to be measured".to_owned(),
            help: "what was done is in the run folder; the same line tries again what failed".to_owned(),
        }),
    }
}

pub(super) fn print_event(told: SetupEvent) {
    match told {
        SetupEvent::Note(text) => crate::console::tell!("{text}"),
        SetupEvent::Excluded { what, help } => {
            crate::console::tell!("warning: {what}");
            help.iter().for_each(|help| crate::console::tell!("help: {help}"));
        }
    }
}
