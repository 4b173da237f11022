//! Kernel arguments of hosts, for profiles that have some.

use std::path::Path;

use wb_model::{Nanos, WorkerName};
use wb_profile::Named;
use wb_profile::boot::{Boot, COMMAND_LINE, CommandLine};
use wb_profile::reboot::reboot;
use wb_run::Member;
use wb_run::ready::Ways;

use super::hosts::asked;
use super::ready::tell;
use super::{Hosts, options, program};
use crate::cli::HostFlags;
use crate::error::Error;

/// Has the kernels of all hosts run with just these arguments beside their own.
pub(crate) async fn start_kernels(
    arguments: &[String],
    limit: Nanos,
    flags: &HostFlags,
    folder: &Path,
    hosts: &mut Hosts,
) -> Result<(), Error> {
    let (program, options) = (program()?, options(flags));
    let ways = Ways { hosts: &hosts.others, program: &program, options: &options };
    Ok(wb_run::ready::start_kernels(folder, arguments, limit, &ways, &mut hosts.crew, &mut tell).await?)
}

/// Reboots the hosts whose kernels still have arguments of a profile; those, or why not.
pub(crate) async fn kernels_back(
    hosts: &mut Hosts,
    limit: Nanos,
    flags: &HostFlags,
) -> Result<Vec<(WorkerName, Result<String, Error>)>, Error> {
    let (program, options) = (program()?, options(flags));
    let mut all = Vec::new();
    for member in &mut hosts.crew.members {
        let name = member.worker.name().clone();
        let added = CommandLine::of(&member.worker).await?.added().join(" ");
        let Some(host) = hosts.others.iter().find(|host| host.name == name).filter(|_| !added.is_empty()) else {
            continue;
        };
        let (worker, boot) = (member.worker.clone(), member.facts.boot_id.clone());
        all.push(match reboot(worker, &boot, &Boot::Usual, host, &program, &options, limit).await {
            Ok(connected) => {
                *member = Member { address: member.address.take(), ..Member::of(connected.worker).await? };
                (name, Ok(added))
            }
            Err(error) => {
                let (what, help) = (error.to_string(), error.help().unwrap_or_default());
                (name, Err(Error::FellShort { what, help }))
            }
        });
    }
    Ok(all)
}

/// Refuses kernel arguments that a profile wants and this machine's kernel lacks, before anything is done.
pub(crate) fn require_elsewhere(profiles: &[Named], flags: &HostFlags) -> Result<(), Error> {
    if !asked(flags)?.is_here() {
        return Ok(());
    }
    let line = CommandLine::here().map_err(|source| Error::File { path: COMMAND_LINE.to_owned(), source })?;
    let lacking =
        profiles.iter().find(|named| matches!(line.start(&named.profile.kernel_arguments), Some(Boot::Again(_))));
    match lacking {
        None => Ok(()),
        Some(named) => Err(would_reboot(format!("the kernel arguments of `{}`", named.name))),
    }
}

/// That this machine is not rebooted.
pub(super) fn would_reboot(what: String) -> Error {
    Error::Usage {
        what: format!("{what} would reboot this machine, and the run would end with it"),
        help: "name other hosts with --hosts, and start the run from a machine that is not measured".to_owned(),
    }
}
