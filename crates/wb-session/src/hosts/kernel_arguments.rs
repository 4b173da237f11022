//! Applies and reverts kernel parameters of hosts, for profiles that have some.

use std::path::Path;

use wb_model::{Nanos, WorkerName};
use wb_profile::NamedProfile;
use wb_profile::boot::{Boot, CommandLine, PROC_CMDLINE};
use wb_profile::reboot::{RebootError, reboot};
use wb_run::PooledWorker;
use wb_run::preparation::{ConnectContext, apply_kernel_arguments};

use super::host_selection::resolve_hosts;
use super::{ConnectedHosts, HostError};
use crate::error::SessionError;
use crate::event::SessionEvent;
use crate::options::HostOptions;
use crate::worker_program::{program_for, read_worker_program};

/// A host whose kernel was reset, with the arguments that were removed, or the error.
pub type KernelReset = (WorkerName, Result<String, RebootError>);

impl ConnectedHosts {
    /// Makes the kernels of all hosts run with exactly these additional arguments, rebooting hosts as needed.
    pub(crate) async fn start_kernels(
        &mut self,
        arguments: &[String],
        limit: Nanos,
        folder: &Path,
    ) -> Result<(), SessionError> {
        let program = program_for(&self.remotes)?;
        let context =
            program.as_ref().map(|program| ConnectContext { hosts: &self.remotes, program, options: &self.options });
        let report = &mut |event| self.events.emit(SessionEvent::Preparation(event));
        Ok(apply_kernel_arguments(folder, arguments, limit, context.as_ref(), &mut self.pool, report).await?)
    }

    /// Reboots the hosts whose kernels still have arguments of a profile.
    pub async fn reset_kernels(&mut self, limit: Nanos) -> Result<Vec<KernelReset>, SessionError> {
        let mut all = Vec::new();
        for member in &mut self.pool.workers {
            let name = member.worker.name().clone();
            let added = CommandLine::read(&member.worker).await?.added().join(" ");
            let Some(host) = self.remotes.iter().find(|host| host.name == name).filter(|_| !added.is_empty()) else {
                continue;
            };
            // Few hosts need it, and it is large.
            let program = read_worker_program()?;
            let (worker, boot) = (member.worker.clone(), member.facts.boot_id.clone());
            all.push(match reboot(worker, &boot, &Boot::Default, host, &program, &self.options, limit).await {
                Ok(connected) => {
                    *member = PooledWorker {
                        address: member.address.take(),
                        ..PooledWorker::with_facts(connected.worker).await?
                    };
                    (name, Ok(added))
                }
                Err(error) => (name, Err(error)),
            });
        }
        Ok(all)
    }
}

/// Refuses profiles whose kernel parameters would require a reboot of this machine.
pub(crate) fn refuse_local_kernel_arguments(
    profiles: &[NamedProfile],
    host_options: &HostOptions,
) -> Result<(), SessionError> {
    if !resolve_hosts(host_options)?.includes_local() {
        return Ok(());
    }
    let line = CommandLine::local().map_err(SessionError::file("read", Path::new(PROC_CMDLINE)))?;
    let lacking = profiles
        .iter()
        .find(|named| matches!(line.required_boot(&named.profile.kernel_arguments), Some(Boot::Kexec(_))));
    match lacking {
        None => Ok(()),
        Some(named) => Err(HostError::LocalReboot(format!("the kernel parameters of `{}`", named.name)).into()),
    }
}
