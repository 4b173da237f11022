//! Prepares hosts for profiles and tests: provisions them, runs setup scripts and reboots.

use std::path::Path;
use std::time::Instant;

use tokio::sync::watch;
use wb_agent::{RecoveryReport, UnrevertedChanges, WorkerError};
use wb_model::{Nanos, WorkerName};
use wb_profile::Controller;
use wb_profile::provision::Provisioner;
use wb_profile::script::{ReadScriptError, Script};
use wb_record::steps::{PreparationEnd, PreparationKind, StepOutcome};
use wb_run::WorkerPool;
use wb_run::preparation::{
    ConnectContext, ExcludedHosts, HostSetup, ProvisionContext, provision, record_ends, record_start, set_up_hosts,
    set_up_workers,
};

use super::host_selection::{RequestedHost, RequestedHosts, resolve_hosts};
use super::{ConnectedHosts, HostError, connect_requested, targets};
use crate::error::SessionError;
use crate::event::{EventSink, HostEvent, SessionEvent};
use crate::options::{HostOptions, PreparationOptions};
use crate::worker_program::{program_for, worker_program};

/// Preparation of hosts and workers before measuring.
pub struct HostPreparation {
    provisioners: Vec<Provisioner>,
    host_scripts: Vec<Script>,
    reboot: Option<Nanos>,
    worker_scripts: Vec<Script>,
    limit: Nanos,
    pub(crate) reboot_limit: Nanos,
}

impl HostPreparation {
    /// Reads the provisioners and scripts, without running any.
    pub fn new(options: &PreparationOptions) -> Result<Self, SessionError> {
        let scripts = |script: &Option<String>, packages: &[String]| {
            let script = script.as_deref().map(Script::read).transpose()?;
            let install = (!packages.is_empty()).then(|| Script::install_packages(packages));
            Ok::<_, ReadScriptError>(script.into_iter().chain(install).collect())
        };
        let provisioners =
            options.provisioners.iter().map(|text| text.parse::<Provisioner>()).collect::<Result<Vec<_>, _>>()?;
        provisioners.iter().try_for_each(Provisioner::require_program).map_err(wb_run::RunError::from)?;
        Ok(Self {
            provisioners,
            host_scripts: scripts(&options.host_setup_script, &options.host_packages)?,
            reboot: options.host_setup_script_reboot.then_some(options.reboot_limit),
            worker_scripts: scripts(&options.worker_setup_script, &options.worker_packages)?,
            limit: options.script_limit,
            reboot_limit: options.reboot_limit,
        })
    }

    /// Runs the worker setup scripts on hosts or newly started guests.
    pub(crate) async fn set_up_workers(
        &self,
        folder: &Path,
        pool: &mut WorkerPool,
        events: &EventSink,
    ) -> Result<(), SessionError> {
        for script in &self.worker_scripts {
            let report = &mut |event| events.emit(SessionEvent::Preparation(event));
            set_up_workers(folder, script, self.limit, pool, report).await?;
        }
        Ok(require_any_host(pool)?)
    }
}

/// Connects to the requested hosts and prepares them; the preparation is recorded in the run folder.
pub(crate) async fn prepare_hosts(
    ready: &HostPreparation,
    host_options: &HostOptions,
    folder: &Path,
    is_folder_given: bool,
    events: &EventSink,
    mut cancel: watch::Receiver<bool>,
) -> Result<ConnectedHosts, SessionError> {
    tokio::select! {
        hosts = run_preparation(ready, host_options, folder, events) => hosts,
        // Dropping the handles ends what is in progress.
        Ok(_) = cancel.wait_for(|cancelled| *cancelled) => Err(SessionError::Interrupted {
            folder: folder.to_owned(),
            is_folder_given,
        }),
    }
}

impl HostPreparation {
    /// Refuses a setup script after which this machine would reboot, before anything is done.
    pub fn refuse_local_reboot(&self, host_options: &HostOptions) -> Result<(), SessionError> {
        Ok(refuse_local_reboot(self, &resolve_hosts(host_options)?)?)
    }
}

async fn run_preparation(
    ready: &HostPreparation,
    host_options: &HostOptions,
    folder: &Path,
    events: &EventSink,
) -> Result<ConnectedHosts, SessionError> {
    let requested = resolve_hosts(host_options)?;
    refuse_local_reboot(ready, &requested)?;
    let left_out = if ready.provisioners.is_empty() {
        ExcludedHosts::new()
    } else {
        provision_hosts(ready, &requested, host_options, folder, events).await?
    };
    let mut hosts = connect_recorded(requested, left_out, host_options, folder, events).await?;
    require_any_host(&hosts.pool)?;
    hosts.exclude_changed().await?;
    for (index, script) in ready.host_scripts.iter().enumerate() {
        let is_last = index + 1 == ready.host_scripts.len();
        let setup = HostSetup { script, limit: ready.limit, reboot: ready.reboot.filter(|_| is_last) };
        let program = program_for(&hosts.remotes)?;
        let context =
            program.as_ref().map(|program| ConnectContext { hosts: &hosts.remotes, program, options: &hosts.options });
        let report = &mut |event| events.emit(SessionEvent::Preparation(event));
        set_up_hosts(folder, &setup, context.as_ref(), &mut hosts.pool, report).await?;
        require_any_host(&hosts.pool)?;
    }
    Ok(hosts)
}

/// Connects to the requested hosts, and records that of other machines: this one is there at once.
async fn connect_recorded(
    requested: RequestedHosts,
    left_out: ExcludedHosts,
    host_options: &HostOptions,
    folder: &Path,
    events: &EventSink,
) -> Result<ConnectedHosts, SessionError> {
    let is_due = |name: &WorkerName| !left_out.contains_key(name);
    let remotes = requested.hosts.iter().filter_map(RequestedHost::remote).map(|host| host.name.clone());
    let remotes: Vec<WorkerName> = remotes.filter(is_due).collect();
    if remotes.is_empty() {
        return connect_requested(requested, left_out, host_options, events).await;
    }
    let step = PreparationKind::Connecting;
    record_start(folder, step, remotes.clone(), None)?;
    let start = Instant::now();
    let hosts = connect_requested(requested, left_out, host_options, events).await?;
    let end = |machine: WorkerName| PreparationEnd {
        outcome: StepOutcome::from_result(&match hosts.pool.unreachable.get(&machine) {
            Some(reason) => Err(reason),
            None => Ok(()),
        }),
        step,
        machine,
        seconds: start.elapsed().as_secs_f64(),
    };
    record_ends(folder, remotes.into_iter().map(end).collect())?;
    Ok(hosts)
}

impl ConnectedHosts {
    /// Excludes hosts on which changes of a run remain, since they are not in their own state; fails if no other host
    /// is left. Reports the leftovers of killed runs on the other hosts; on this machine, the agent reports them.
    pub async fn exclude_changed(&mut self) -> Result<(), SessionError> {
        self.report_all_leftovers().await?;
        let mut last = None;
        for member in self.pool.workers.clone() {
            let name = member.worker.name().clone();
            if let Some(still) = member.worker.recovery_report().await?.unreverted {
                self.pool.remove(&name, still.to_string());
                // The agent was not used, so a failure to close it does not matter.
                let _ = member.worker.close().await;
                if let Some(error) = last.replace(SessionError::StillChanged { host: name, still }) {
                    self.events.warn(error);
                }
            }
        }
        match last {
            Some(error) if self.pool.workers.is_empty() => Err(error),
            last => {
                last.into_iter().for_each(|error| self.events.warn(error));
                Ok(())
            }
        }
    }

    /// Reports what killed runs had left changed on hosts and the agents reverted when they started. On this machine
    /// the agent reports that.
    pub async fn report_all_leftovers(&self) -> Result<(), WorkerError> {
        for member in &self.pool.workers {
            let name = member.worker.name();
            if self.remotes.iter().any(|host| host.name == *name) {
                self.report_leftovers(name, member.worker.recovery_report().await?);
            }
        }
        Ok(())
    }

    /// Reports what killed runs had left changed on a host. Returns the changes that remain.
    pub(super) fn report_leftovers(&self, host: &WorkerName, left: RecoveryReport) -> Option<UnrevertedChanges> {
        for change in left.reverted {
            self.events.emit_host(host, HostEvent::LeftoverReverted(change));
        }
        if let Some(fault) = left.fault {
            self.events.emit_host(host, HostEvent::LeftoverCheckFailed(fault));
        }
        left.unreverted
    }
}

async fn provision_hosts(
    ready: &HostPreparation,
    requested: &RequestedHosts,
    host_options: &HostOptions,
    folder: &Path,
    events: &EventSink,
) -> Result<ExcludedHosts, SessionError> {
    let controller = Controller::start(&worker_program()?).await?;
    let ssh_config = host_options.selection.ssh_config.as_deref();
    let targets = targets::resolve_targets(requested, &ready.provisioners, host_options, &controller).await?;
    let context = ProvisionContext { controller: &controller, ssh_config };
    let report = &mut |event| events.emit(SessionEvent::Preparation(event));
    let excluded = provision(folder, &ready.provisioners, &targets, &context, report).await;
    controller.close().await?;
    Ok(excluded?)
}

fn refuse_local_reboot(ready: &HostPreparation, requested: &RequestedHosts) -> Result<(), HostError> {
    if ready.reboot.is_none() || !requested.includes_local() {
        return Ok(());
    }
    Err(HostError::LocalReboot("--host-setup-script-reboot".to_owned()))
}

pub(crate) fn require_any_host(pool: &WorkerPool) -> Result<(), HostError> {
    if pool.workers.is_empty() { Err(HostError::NoneLeft) } else { Ok(()) }
}
