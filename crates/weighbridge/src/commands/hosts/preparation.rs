//! Prepares hosts for profiles and tests: provisions them, runs setup scripts and reboots.

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

/// Preparation of hosts and workers before measuring.
pub(crate) struct HostPreparation {
    provisioners: Vec<Provisioner>,
    host_scripts: Vec<Script>,
    reboot: Option<Nanos>,
    worker_scripts: Vec<Script>,
    limit: Nanos,
    /// Time limit for a reboot.
    pub(crate) reboot_limit: Nanos,
}

impl HostPreparation {
    /// Reads the preparation flags.
    pub(crate) fn from_flags(flags: &PreparationFlags) -> Result<Self, Error> {
        let usage = |what: String| Error::Usage { what, help: "see docs/provisioning.md".to_owned() };
        let provisioner = |text: &String| text.parse::<Provisioner>().map_err(|error| usage(error.to_string()));
        let scripts = |script: &Option<String>, packages: &[String]| {
            let script = script.as_deref().map(Script::read).transpose();
            let install = (!packages.is_empty()).then(|| Script::install_packages(packages));
            let all = script.map(|script| script.into_iter().chain(install).collect());
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

    /// Runs the worker setup scripts on hosts or newly started guests.
    pub(crate) async fn set_up_workers(&self, folder: &Path, pool: &mut WorkerPool) -> Result<(), Error> {
        for script in &self.worker_scripts {
            set_up_workers(folder, script, self.limit, pool, &mut print_event).await?;
        }
        require_any_host(pool)
    }
}

/// Connects to the requested hosts and prepares them; the preparation is recorded in the run folder.
pub(crate) async fn prepare_hosts(
    ready: &HostPreparation,
    flags: &HostFlags,
    folder: &Path,
    console: &Console,
    mut cancel: watch::Receiver<bool>,
) -> Result<ConnectedHosts, Error> {
    tokio::select! {
        hosts = run_preparation(ready, flags, folder, console) => hosts,
        // Dropping the handles ends what is in progress.
        Ok(_) = cancel.wait_for(|cancelled| *cancelled) => Err(Error::Interrupted),
    }
}

async fn run_preparation(
    ready: &HostPreparation,
    flags: &HostFlags,
    folder: &Path,
    console: &Console,
) -> Result<ConnectedHosts, Error> {
    let requested = resolve_hosts(flags)?;
    refuse_local_reboot(ready, &requested)?;
    let left_out = match ready.provisioners.is_empty() {
        true => ExcludedHosts::new(),
        false => provision_hosts(ready, &requested, flags, folder).await?,
    };
    let mut hosts = connect_requested(requested, left_out, flags, console).await?;
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

/// Excludes hosts on which changes of a run remain, since they are not in their own state, and reports what killed runs
/// had left on the others. On this machine the agent reports that.
///
/// # Errors
/// When no other host is left.
pub(crate) async fn exclude_changed_hosts(hosts: &mut ConnectedHosts) -> Result<(), Error> {
    report_all_leftovers(hosts).await?;
    let mut last = None;
    for member in hosts.pool.workers.clone() {
        let name = member.worker.name().clone();
        if let Some(still) = member.worker.recovery_report().await?.unreverted {
            hosts.pool.remove(&name, still.to_string());
            // The agent was not used, so a failure to close it does not matter.
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

/// Reports what killed runs had left changed on hosts and the agents reverted when they started. On this machine the
/// agent reports that.
pub(crate) async fn report_all_leftovers(hosts: &ConnectedHosts) -> Result<(), Error> {
    for member in &hosts.pool.workers {
        let name = member.worker.name();
        if hosts.remotes.iter().any(|host| host.name == *name) {
            report_leftovers(name, &member.worker.recovery_report().await?);
        }
    }
    Ok(())
}

/// Reports what killed runs had left changed on a host.
pub(super) fn report_leftovers(host: &WorkerName, left: &RecoveryReport) {
    for RestoredChange { description: what, outcome: how } in &left.reverted {
        crate::console::message!("note: `{host}`: a run that was killed had changed {what}: {how}");
    }
    if let Some(fault) = &left.fault {
        crate::console::message!("warning: `{host}`: {fault}");
        crate::console::message!("help: measurements there may not reflect the host's own state");
    }
}

async fn provision_hosts(
    ready: &HostPreparation,
    requested: &RequestedHosts,
    flags: &HostFlags,
    folder: &Path,
) -> Result<ExcludedHosts, Error> {
    let controller = Controller::start(&current_program()?).await?;
    let ssh_config = flags.selection.ssh_config.as_deref();
    let mut left_out = ExcludedHosts::new();
    let targets = targets::resolve_targets(requested, &ready.provisioners, flags, &controller).await?;
    let desk = ProvisionContext { controller: &controller, ssh_config };
    let excluded = provision(folder, &ready.provisioners, &targets, &desk, &mut print_event).await;
    controller.close().await?;
    left_out.extend(excluded?);
    Ok(left_out)
}

/// Refuses to reboot this machine, before anything is done.
fn refuse_local_reboot(ready: &HostPreparation, requested: &RequestedHosts) -> Result<(), Error> {
    if ready.reboot.is_none() || !requested.includes_local() {
        return Ok(());
    }
    Err(kernel_arguments::local_reboot_error("--host-setup-script-reboot".to_owned()))
}

/// Fails if no host is left to measure on.
fn require_any_host(pool: &WorkerPool) -> Result<(), Error> {
    match pool.workers.is_empty() {
        false => Ok(()),
        true => Err(Error::Incomplete {
            what: "no host left to measure on".to_owned(),
            help: "the run folder has the logs; run the same command again to retry what failed".to_owned(),
        }),
    }
}

/// Prints a preparation event.
pub(super) fn print_event(event: SetupEvent) {
    match event {
        SetupEvent::Note(text) => crate::console::message!("{text}"),
        SetupEvent::Excluded { message: what, help } => {
            crate::console::message!("warning: {what}");
            help.iter().for_each(|help| crate::console::message!("help: {help}"));
        }
    }
}
