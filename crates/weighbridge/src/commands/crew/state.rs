//! Hosts in the profiles that were asked for.

use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use wb_agent::{PutBack, Worker};
use wb_model::{ProfileName, WorkerName};
use wb_profile::{Applied, HostAt, Means, Named, Preflight, Profile, ProfileError, Shelf, Standing, apply, preflight};
use wb_run::crew::GuestConsole;
use wb_run::{Crew, Member};
use wb_sys::undo::Undone;

use super::Hosts;
use crate::cli::HostFlags;
use crate::commands::tune::all_sets;
use crate::console::{Console, tell};
use crate::error::Error;

/// The profiles that there are, with those of asset folders.
pub(crate) fn shelf(assets: &[PathBuf]) -> Result<Shelf, Error> {
    let config = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".config")));
    Ok(Shelf::of(&wb_profile::folders(config.as_deref(), assets)).map_err(wb_profile::BadUse::from)?)
}

/// The profiles that were asked for; the host as it is where none was.
pub(crate) fn profiles(flags: &HostFlags) -> Result<Vec<Named>, Error> {
    if flags.profiles.is_empty() {
        return Ok(vec![localhost()]);
    }
    Ok(wb_profile::asked(&flags.profiles, &shelf(&flags.paths)?, &all_sets()?)?)
}

/// The host as it is.
pub(crate) fn localhost() -> Named {
    Named { name: ProfileName::localhost(), profile: Profile::default() }
}

/// Hosts in a profile.
pub(crate) struct State {
    /// Those that measure: the hosts, or their guests.
    pub(crate) crew: Crew,
    /// What the hosts were made to be.
    pub(crate) standings: Vec<Standing>,
    applied: Vec<Applied>,
}

/// What becomes of a profile that no host can be put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmet {
    /// There is no other: it ends the run.
    Ends,
    /// Its cells are recorded as unsupported, and others are measured.
    IsRecorded,
}

/// Puts all hosts into a profile, at the same time. One that cannot be is told, and is no reason not to measure on the
/// others.
///
/// # Errors
/// When none can be, and that ends the run.
pub(crate) async fn put(
    named: &Named,
    hosts: &Hosts,
    flags: &HostFlags,
    unmet: Unmet,
    console: &Console,
) -> Result<State, Error> {
    let disables_smt = hosts.all().any(|(_, reached)| reached.params.disable_smt == Some(true));
    if named.profile.is_plain() && !disables_smt {
        return Ok(State { crew: hosts.crew.clone(), standings: Vec::new(), applied: Vec::new() });
    }
    let (options, program, sets) = (super::options(flags), super::program()?, all_sets()?);
    let quiet = console.quiet;
    let told = |host: &WorkerName, line: String| {
        if !quiet {
            tell!("`{host}`: {line}");
        }
    };
    let means = Means { options: &options, program: &program, assets: &flags.paths, sets: &sets, told: &told };
    let each = hosts.all().map(|(member, reached)| {
        let host = HostAt { worker: &member.worker, params: &reached.params, address: reached.address.as_ref() };
        let means = &means;
        async move { (member, apply(named, &host, means).await) }
    });
    let mut crew = Crew { absent: hosts.crew.absent.clone(), ..Crew::default() };
    let (mut applied, mut failed) = (Vec::new(), Vec::new());
    for (member, result) in join_all(each).await {
        match result {
            Ok(one) => {
                enter(&mut crew, member, &one).await?;
                tell_unsettable(&one.standing, console);
                applied.push(one);
            }
            Err(error) => {
                crew.absent.insert(error.host.clone(), error.to_string());
                failed.push(error);
            }
        }
    }
    groups(&mut crew, hosts, &applied);
    let last = if applied.is_empty() && unmet == Unmet::Ends { failed.pop() } else { None };
    failed.iter().for_each(warn);
    match last {
        Some(error) => Err(error.into()),
        None => Ok(State { crew, standings: applied.iter().map(|one| one.standing.clone()).collect(), applied }),
    }
}

/// Finds out on all hosts, at the same time, whether they can be put into a profile.
pub(crate) async fn preflights(named: &Named, hosts: &Hosts, flags: &HostFlags) -> Result<Vec<Preflight>, Error> {
    if named.profile.is_plain() {
        return Ok(Vec::new());
    }
    let (options, program, sets) = (super::options(flags), super::program()?, all_sets()?);
    let silent = |_: &WorkerName, _: String| {};
    let means = Means { options: &options, program: &program, assets: &flags.paths, sets: &sets, told: &silent };
    let each = hosts.all().map(|(member, reached)| {
        let host = HostAt { worker: &member.worker, params: &reached.params, address: reached.address.as_ref() };
        let means = &means;
        async move { preflight(named, &host, means).await }
    });
    join_all(each).await.into_iter().map(|result| Ok(result?)).collect()
}

/// Has those measure that a host in its profile offers.
async fn enter(crew: &mut Crew, host: &Member, applied: &Applied) -> Result<(), Error> {
    if applied.standing.profile.guests.is_none() {
        // The profile may have changed which CPUs are online.
        crew.members.push(Member { address: host.address.clone(), ..Member::of(host.worker.clone()).await? });
        return Ok(());
    }
    for (guest, made, path) in applied.guests() {
        let address = Some(made.address.clone());
        let console = Some(GuestConsole { host: host.worker.clone(), path: path.to_owned() });
        crew.members.push(Member { address, console, ..Member::of(Worker::clone(guest)).await? });
    }
    crew.below.push(host.clone());
    Ok(())
}

/// What a name of a host or group means: guests, where a host has some, are meant by its name.
fn groups(crew: &mut Crew, hosts: &Hosts, applied: &[Applied]) {
    let guests = |host: &WorkerName| {
        let of_host = applied.iter().find(|one| one.standing.host == *host && one.guests().next().is_some());
        of_host.map(|one| one.standing.guests.iter().map(|guest| guest.name.clone()).collect::<Vec<_>>())
    };
    for (group, members) in &hosts.crew.groups {
        let all = members.iter().flat_map(|host| guests(host).unwrap_or_else(|| vec![host.clone()]));
        crew.groups.insert(group.clone(), all.collect());
    }
    for (member, _) in hosts.all() {
        let host = member.worker.name();
        if let Some(guests) = guests(host) {
            crew.groups.insert(host.to_string(), guests);
        }
    }
}

impl State {
    /// What the consoles of all guests have said.
    pub(crate) async fn consoles(&self) -> Vec<(WorkerName, Vec<u8>)> {
        join_all(self.applied.iter().map(Applied::consoles)).await.concat()
    }

    /// Brings all hosts back, and says what is not as it was found; the hosts that could not be brought back.
    pub(crate) async fn revert(self) -> Vec<WorkerName> {
        let mut failed = Vec::new();
        for result in join_all(self.applied.into_iter().map(one_back)).await {
            match result {
                Ok((host, back)) => back.iter().for_each(|one| say_left(&host, one)),
                Err(error) => {
                    warn(&error);
                    failed.push(error.host);
                }
            }
        }
        failed
    }
}

async fn one_back(applied: Applied) -> Result<(WorkerName, Vec<PutBack>), ProfileError> {
    let host = applied.standing.host.clone();
    Ok((host, applied.revert().await?))
}

fn say_left(host: &WorkerName, PutBack { what, how }: &PutBack) {
    if matches!(how, Undone::Left { .. }) {
        tell!("warning: `{host}`: {what}: {how}");
    }
}

fn tell_unsettable(standing: &Standing, console: &Console) {
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
