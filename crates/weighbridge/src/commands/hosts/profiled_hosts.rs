//! Applies the requested profiles to hosts and reverts them.

use std::path::PathBuf;

use futures_util::future::join_all;
use wb_agent::{RestoredChange, Worker};
use wb_model::{ProfileName, WorkerName};
use wb_profile::{
    ActiveProfile, AppliedProfile, ApplyContext, NamedProfile, Preflight, Profile, ProfileCatalog, ProfileError,
    ProfileHost, apply, preflight,
};
use wb_run::worker_pool::GuestConsole;
use wb_run::{PooledWorker, WorkerPool};
use wb_sys::undo::RevertOutcome;

use super::ConnectedHosts;
use crate::cli::HostFlags;
use crate::commands::tune::all_sets;
use crate::console::{Console, message};
use crate::error::Error;

/// The available profiles, including those of asset folders.
pub(crate) fn profile_catalog(assets: &[PathBuf]) -> Result<ProfileCatalog, Error> {
    Ok(ProfileCatalog::load(&wb_profile::profile_folders(assets)).map_err(wb_profile::ProfileSelectionError::from)?)
}

/// The requested profiles; the unchanged host if none is requested.
pub(crate) fn requested_profiles(flags: &HostFlags) -> Result<Vec<NamedProfile>, Error> {
    if flags.profiles.is_empty() {
        return Ok(vec![localhost()]);
    }
    Ok(wb_profile::parse_profiles(&flags.profiles, &profile_catalog(&flags.paths)?, &all_sets()?)?)
}

/// The profile that leaves the host unchanged.
pub(crate) fn localhost() -> NamedProfile {
    NamedProfile { name: ProfileName::localhost(), profile: Profile::default() }
}

/// Hosts in an applied profile.
pub(crate) struct ProfiledHosts {
    /// The workers that measure: the hosts, or their guests.
    pub(crate) pool: WorkerPool,
    /// The state that each host was put into.
    pub(crate) standings: Vec<AppliedProfile>,
    applied: Vec<ActiveProfile>,
}

/// What to do when a profile cannot be applied to any host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnmetProfilePolicy {
    /// Abort the run, because there is no other profile.
    Abort,
    /// Record its cells as unsupported, and measure the other profiles.
    Record,
}

/// Applies a profile to all hosts at the same time. A host that fails causes a warning as long as there are others.
///
/// # Errors
/// When the profile cannot be applied to any host and `unmet` aborts the run.
pub(crate) async fn apply_profile(
    named: &NamedProfile,
    hosts: &ConnectedHosts,
    flags: &HostFlags,
    unmet: UnmetProfilePolicy,
    console: &Console,
) -> Result<ProfiledHosts, Error> {
    let disables_smt = hosts.iter().any(|(_, reached)| reached.params.disable_smt == Some(true));
    if named.profile.is_empty() && !disables_smt {
        return Ok(ProfiledHosts { pool: hosts.pool.clone(), standings: Vec::new(), applied: Vec::new() });
    }
    let (options, program, sets) = (super::connect_options(flags), super::read_program()?, all_sets()?);
    let quiet = console.quiet;
    let report = |host: &WorkerName, line: String| {
        if !quiet {
            message!("`{host}`: {line}");
        }
    };
    let means =
        ApplyContext { options: &options, program: &program, assets: &flags.paths, sets: &sets, notify: &report };
    let each = hosts.iter().map(|(member, reached)| {
        let host = ProfileHost { worker: &member.worker, params: &reached.params, address: reached.address.as_ref() };
        let means = &means;
        async move { (member, apply(named, &host, means).await) }
    });
    let mut pool = WorkerPool { unreachable: hosts.pool.unreachable.clone(), ..WorkerPool::default() };
    let (mut applied, mut failed) = (Vec::new(), Vec::new());
    for (member, result) in join_all(each).await {
        match result {
            Ok(one) => {
                add_workers(&mut pool, member, &one).await?;
                note_unsettable(&one.standing, console);
                applied.push(one);
            }
            Err(error) => {
                pool.unreachable.insert(error.host.clone(), error.to_string());
                failed.push(error);
            }
        }
    }
    resolve_groups(&mut pool, hosts, &applied);
    let last = if applied.is_empty() && unmet == UnmetProfilePolicy::Abort { failed.pop() } else { None };
    failed.iter().for_each(warn);
    match last {
        Some(error) => Err(error.into()),
        None => {
            Ok(ProfiledHosts { pool, standings: applied.iter().map(|one| one.standing.clone()).collect(), applied })
        }
    }
}

/// Checks on all hosts at the same time whether a profile can be applied.
pub(crate) async fn preflight_hosts(
    named: &NamedProfile,
    hosts: &ConnectedHosts,
    flags: &HostFlags,
) -> Result<Vec<Preflight>, Error> {
    if named.profile.is_empty() {
        return Ok(Vec::new());
    }
    let (options, program, sets) = (super::connect_options(flags), super::read_program()?, all_sets()?);
    let silent = |_: &WorkerName, _: String| {};
    let means =
        ApplyContext { options: &options, program: &program, assets: &flags.paths, sets: &sets, notify: &silent };
    let each = hosts.iter().map(|(member, reached)| {
        let host = ProfileHost { worker: &member.worker, params: &reached.params, address: reached.address.as_ref() };
        let means = &means;
        async move { preflight(named, &host, means).await }
    });
    join_all(each).await.into_iter().map(|result| Ok(result?)).collect()
}

/// Adds the workers of a host in its profile: its guests, or the host itself.
async fn add_workers(pool: &mut WorkerPool, host: &PooledWorker, applied: &ActiveProfile) -> Result<(), Error> {
    if applied.standing.profile.guests.is_none() {
        // The profile may have changed which CPUs are online.
        pool.workers.push(PooledWorker {
            address: host.address.clone(),
            ..PooledWorker::with_facts(host.worker.clone()).await?
        });
        return Ok(());
    }
    for (guest, created, path) in applied.guests() {
        let address = Some(created.address.clone());
        let console = Some(GuestConsole { host: host.worker.clone(), path: path.to_owned() });
        pool.workers.push(PooledWorker { address, console, ..PooledWorker::with_facts(Worker::clone(guest)).await? });
    }
    pool.vm_hosts.push(host.clone());
    Ok(())
}

/// Resolves names of hosts and groups to workers; the name of a host with guests stands for its guests.
fn resolve_groups(pool: &mut WorkerPool, hosts: &ConnectedHosts, applied: &[ActiveProfile]) {
    let guests = |host: &WorkerName| {
        let of_host = applied.iter().find(|one| one.standing.host == *host && one.guests().next().is_some());
        of_host.map(|one| one.standing.guests.iter().map(|guest| guest.name.clone()).collect::<Vec<_>>())
    };
    for (group, members) in &hosts.pool.groups {
        let all = members.iter().flat_map(|host| guests(host).unwrap_or_else(|| vec![host.clone()]));
        pool.groups.insert(group.clone(), all.collect());
    }
    for (member, _) in hosts.iter() {
        let host = member.worker.name();
        if let Some(guests) = guests(host) {
            pool.groups.insert(host.to_string(), guests);
        }
    }
}

impl ProfiledHosts {
    /// The console output of all guests.
    pub(crate) async fn console_output(&self) -> Vec<(WorkerName, Vec<u8>)> {
        join_all(self.applied.iter().map(ActiveProfile::consoles)).await.concat()
    }

    /// Reverts all hosts and warns about what could not be restored. Returns the hosts that could not be reverted.
    pub(crate) async fn revert(self) -> Vec<WorkerName> {
        let mut failed = Vec::new();
        for result in join_all(self.applied.into_iter().map(revert_host)).await {
            match result {
                Ok((host, reverted)) => reverted.iter().for_each(|one| warn_left(&host, one)),
                Err(error) => {
                    warn(&error);
                    failed.push(error.host);
                }
            }
        }
        failed
    }
}

async fn revert_host(applied: ActiveProfile) -> Result<(WorkerName, Vec<RestoredChange>), ProfileError> {
    let host = applied.standing.host.clone();
    Ok((host, applied.revert().await?))
}

fn warn_left(host: &WorkerName, RestoredChange { description: what, outcome: how }: &RestoredChange) {
    if matches!(how, RevertOutcome::Conflict { .. }) {
        message!("warning: `{host}`: {what}: {how}");
    }
}

fn note_unsettable(standing: &AppliedProfile, console: &Console) {
    let reasons = standing.knobs.iter().filter_map(|one| Some((&one.knob, one.outcome.reason()?)));
    let unset: Vec<String> = reasons.map(|(knob, reason)| format!("{knob} ({reason})")).collect();
    if !unset.is_empty() && !console.quiet {
        message!("note: `{}`: unsupported settings of the profile: {}", standing.host, unset.join("; "));
    }
}

fn warn(error: &ProfileError) {
    message!("warning: {error}");
    if let Some(help) = error.help() {
        message!("help: {help}");
    }
}
