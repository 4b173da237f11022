//! Hosts in the profiles that were asked for.

use std::path::{Path, PathBuf};

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
use crate::console::{Console, tell};
use crate::error::Error;

/// The profiles that there are, with those of asset folders.
pub(crate) fn profile_catalog(assets: &[PathBuf]) -> Result<ProfileCatalog, Error> {
    let config = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".config")));
    Ok(ProfileCatalog::load(&wb_profile::profile_folders(config.as_deref(), assets))
        .map_err(wb_profile::ProfileSelectionError::from)?)
}

/// The profiles that were asked for; the host as it is where none was.
pub(crate) fn requested_profiles(flags: &HostFlags) -> Result<Vec<NamedProfile>, Error> {
    if flags.profiles.is_empty() {
        return Ok(vec![localhost()]);
    }
    Ok(wb_profile::parse_profiles(&flags.profiles, &profile_catalog(&flags.paths)?, &all_sets()?)?)
}

/// The host as it is.
pub(crate) fn localhost() -> NamedProfile {
    NamedProfile { name: ProfileName::localhost(), profile: Profile::default() }
}

/// Hosts in a profile.
pub(crate) struct ProfiledHosts {
    /// Those that measure: the hosts, or their guests.
    pub(crate) pool: WorkerPool,
    /// What the hosts were made to be.
    pub(crate) standings: Vec<AppliedProfile>,
    applied: Vec<ActiveProfile>,
}

/// What becomes of a profile that no host can be put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnmetProfilePolicy {
    /// There is no other: it ends the run.
    Abort,
    /// Its cells are recorded as unsupported, and others are measured.
    Record,
}

/// Puts all hosts into a profile, at the same time. One that cannot be is told, and is no reason not to measure on the
/// others.
///
/// # Errors
/// When none can be, and that ends the run.
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
    let told = |host: &WorkerName, line: String| {
        if !quiet {
            tell!("`{host}`: {line}");
        }
    };
    let means = ApplyContext { options: &options, program: &program, assets: &flags.paths, sets: &sets, notify: &told };
    let each = hosts.iter().map(|(member, reached)| {
        let host = ProfileHost { worker: &member.worker, params: &reached.params, address: reached.address.as_ref() };
        let means = &means;
        async move { (member, apply(named, &host, means).await) }
    });
    let mut crew = WorkerPool { unreachable: hosts.pool.unreachable.clone(), ..WorkerPool::default() };
    let (mut applied, mut failed) = (Vec::new(), Vec::new());
    for (member, result) in join_all(each).await {
        match result {
            Ok(one) => {
                add_workers(&mut crew, member, &one).await?;
                note_unsettable(&one.standing, console);
                applied.push(one);
            }
            Err(error) => {
                crew.unreachable.insert(error.host.clone(), error.to_string());
                failed.push(error);
            }
        }
    }
    resolve_groups(&mut crew, hosts, &applied);
    let last = if applied.is_empty() && unmet == UnmetProfilePolicy::Abort { failed.pop() } else { None };
    failed.iter().for_each(warn);
    match last {
        Some(error) => Err(error.into()),
        None => Ok(ProfiledHosts {
            pool: crew,
            standings: applied.iter().map(|one| one.standing.clone()).collect(),
            applied,
        }),
    }
}

/// Finds out on all hosts, at the same time, whether they can be put into a profile.
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

/// Has those measure that a host in its profile offers.
async fn add_workers(crew: &mut WorkerPool, host: &PooledWorker, applied: &ActiveProfile) -> Result<(), Error> {
    if applied.standing.profile.guests.is_none() {
        // The profile may have changed which CPUs are online.
        crew.workers.push(PooledWorker {
            address: host.address.clone(),
            ..PooledWorker::with_facts(host.worker.clone()).await?
        });
        return Ok(());
    }
    for (guest, made, path) in applied.guests() {
        let address = Some(made.address.clone());
        let console = Some(GuestConsole { host: host.worker.clone(), path: path.to_owned() });
        crew.workers.push(PooledWorker { address, console, ..PooledWorker::with_facts(Worker::clone(guest)).await? });
    }
    crew.vm_hosts.push(host.clone());
    Ok(())
}

/// What a name of a host or group means: guests, where a host has some, are meant by its name.
fn resolve_groups(crew: &mut WorkerPool, hosts: &ConnectedHosts, applied: &[ActiveProfile]) {
    let guests = |host: &WorkerName| {
        let of_host = applied.iter().find(|one| one.standing.host == *host && one.guests().next().is_some());
        of_host.map(|one| one.standing.guests.iter().map(|guest| guest.name.clone()).collect::<Vec<_>>())
    };
    for (group, members) in &hosts.pool.groups {
        let all = members.iter().flat_map(|host| guests(host).unwrap_or_else(|| vec![host.clone()]));
        crew.groups.insert(group.clone(), all.collect());
    }
    for (member, _) in hosts.iter() {
        let host = member.worker.name();
        if let Some(guests) = guests(host) {
            crew.groups.insert(host.to_string(), guests);
        }
    }
}

impl ProfiledHosts {
    /// What the consoles of all guests have said.
    pub(crate) async fn console_output(&self) -> Vec<(WorkerName, Vec<u8>)> {
        join_all(self.applied.iter().map(ActiveProfile::consoles)).await.concat()
    }

    /// Brings all hosts back, and says what is not as it was found; the hosts that could not be brought back.
    pub(crate) async fn revert(self) -> Vec<WorkerName> {
        let mut failed = Vec::new();
        for result in join_all(self.applied.into_iter().map(revert_host)).await {
            match result {
                Ok((host, back)) => back.iter().for_each(|one| warn_left(&host, one)),
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

fn warn_left(host: &WorkerName, RestoredChange { what, outcome: how }: &RestoredChange) {
    if matches!(how, RevertOutcome::Conflict { .. }) {
        tell!("warning: `{host}`: {what}: {how}");
    }
}

fn note_unsettable(standing: &AppliedProfile, console: &Console) {
    let reasons = standing.knobs.iter().filter_map(|one| Some((&one.knob, one.outcome.reason()?)));
    let unset: Vec<String> = reasons.map(|(knob, why)| format!("{knob} ({why})")).collect();
    if !unset.is_empty() && !console.quiet {
        tell!("note: `{}`: of its sets cannot be set here: {}", standing.host, unset.join("; "));
    }
}

fn warn(error: &ProfileError) {
    tell!("warning: {error}");
    if let Some(help) = error.help() {
        tell!("help: {help}");
    }
}
