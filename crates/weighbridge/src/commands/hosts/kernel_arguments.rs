//! Kernel arguments of hosts, for profiles that have some.

use std::path::Path;

use wb_model::{Nanos, WorkerName};
use wb_profile::NamedProfile;
use wb_profile::boot::{Boot, COMMAND_LINE, CommandLine};
use wb_profile::reboot::reboot;
use wb_run::PooledWorker;
use wb_run::preparation::ConnectContext;

use super::host_selection::resolve_hosts;
use super::preparation::print_event;
use super::{ConnectedHosts, connect_options, read_program};
use crate::cli::HostFlags;
use crate::error::Error;

/// Has the kernels of all hosts run with just these arguments beside their own.
pub(crate) async fn start_kernels(
    arguments: &[String],
    limit: Nanos,
    flags: &HostFlags,
    folder: &Path,
    hosts: &mut ConnectedHosts,
) -> Result<(), Error> {
    let (program, options) = (read_program()?, connect_options(flags));
    let ways = ConnectContext { hosts: &hosts.remotes, program: &program, options: &options };
    Ok(wb_run::preparation::apply_kernel_arguments(folder, arguments, limit, &ways, &mut hosts.pool, &mut print_event)
        .await?)
}

/// Reboots the hosts whose kernels still have arguments of a profile; those, or why not.
pub(crate) async fn reset_kernels(
    hosts: &mut ConnectedHosts,
    limit: Nanos,
    flags: &HostFlags,
) -> Result<Vec<(WorkerName, Result<String, Error>)>, Error> {
    let (program, options) = (read_program()?, connect_options(flags));
    let mut all = Vec::new();
    for member in &mut hosts.pool.workers {
        let name = member.worker.name().clone();
        let added = CommandLine::read(&member.worker).await?.added().join(" ");
        let Some(host) = hosts.remotes.iter().find(|host| host.name == name).filter(|_| !added.is_empty()) else {
            continue;
        };
        let (worker, boot) = (member.worker.clone(), member.facts.boot_id.clone());
        all.push(match reboot(worker, &boot, &Boot::Default, host, &program, &options, limit).await {
            Ok(connected) => {
                *member = PooledWorker {
                    address: member.address.take(),
                    ..PooledWorker::with_facts(connected.worker).await?
                };
                (name, Ok(added))
            }
            Err(error) => {
                let (what, help) = (error.to_string(), error.help().unwrap_or_default());
                (name, Err(Error::Incomplete { what, help }))
            }
        });
    }
    Ok(all)
}

/// Refuses kernel arguments that a profile wants and this machine's kernel lacks, before anything is done.
pub(crate) fn refuse_local_kernel_arguments(profiles: &[NamedProfile], flags: &HostFlags) -> Result<(), Error> {
    if !resolve_hosts(flags)?.includes_local() {
        return Ok(());
    }
    let line = CommandLine::local().map_err(|source| Error::File { path: COMMAND_LINE.to_owned(), source })?;
    let lacking = profiles
        .iter()
        .find(|named| matches!(line.required_boot(&named.profile.kernel_arguments), Some(Boot::Kexec(_))));
    match lacking {
        None => Ok(()),
        Some(named) => Err(local_reboot_error(format!("the kernel arguments of `{}`", named.name))),
    }
}

/// That this machine is not rebooted.
pub(super) fn local_reboot_error(what: String) -> Error {
    Error::Usage {
        what: format!("{what} would reboot this machine, and the run would end with it"),
        help: "name other hosts with --hosts, and start the run from a machine that is not measured".to_owned(),
    }
}
