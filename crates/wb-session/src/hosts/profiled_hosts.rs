//! Applies the requested profiles to hosts and reverts them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use wb_agent::{RevertedChange, Worker};
use wb_fleet::Program;
use wb_knobs::KnobSet;
use wb_model::{ProfileName, WorkerName};
use wb_profile::{
    ActiveProfile, AppliedProfile, ApplyContext, NamedProfile, Preflight, Profile, ProfileCatalog, ProfileError,
    ProfileHost, apply, preflight,
};
use wb_record::steps::{PreparationEnd, PreparationKind, StepOutcome};
use wb_run::preparation::{record_ends, record_start};
use wb_run::worker_pool::GuestConsole;
use wb_run::{PooledWorker, WorkerPool};
use wb_sys::undo::RevertOutcome;

use super::{ConnectedHosts, HostConnection};
use crate::error::SessionError;
use crate::event::{EventSink, HostEvent};
use crate::knob_sets::all_sets;
use crate::options::HostOptions;
use crate::worker_program::read_worker_program;

/// The available profiles, including those of asset folders.
pub fn profile_catalog(assets: &[PathBuf]) -> Result<ProfileCatalog, SessionError> {
    Ok(ProfileCatalog::load(&wb_profile::profile_folders(assets)).map_err(wb_profile::ProfileSelectionError::from)?)
}

/// The requested profiles; the unchanged host if none is requested.
pub fn requested_profiles(host_options: &HostOptions) -> Result<Vec<NamedProfile>, SessionError> {
    if host_options.profiles.is_empty() {
        return Ok(vec![localhost()]);
    }
    Ok(wb_profile::parse_profiles(&host_options.profiles, &profile_catalog(&host_options.paths)?, &all_sets()?)?)
}

/// The profile that leaves the host unchanged.
pub fn localhost() -> NamedProfile {
    NamedProfile { name: ProfileName::localhost(), profile: Profile::default() }
}

pub(crate) struct ProfiledHosts {
    /// The workers that measure: the hosts, or their guests.
    pub(crate) pool: WorkerPool,
    pub(crate) applied: Vec<AppliedProfile>,
    active: Vec<ActiveProfile>,
    events: EventSink,
}

/// What to do when a profile cannot be applied to any host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProfileFailurePolicy {
    /// Abort the run, because there is no other profile.
    Abort,
    /// Record its cells as unsupported, and measure the other profiles.
    Record,
}

impl ConnectedHosts {
    /// Applies a profile to all hosts at the same time. A host that fails causes a warning as long as there are others;
    /// if the profile can be applied to none, `unmet` decides whether that is an error.
    pub(crate) async fn apply_profile(
        &self,
        named: &NamedProfile,
        unmet: ProfileFailurePolicy,
        folder: &Path,
    ) -> Result<ProfiledHosts, SessionError> {
        let disables_smt = self.iter().any(|(_, reached)| reached.params.disable_smt == Some(true));
        if named.profile.is_empty() && !disables_smt {
            let (pool, events) = (self.pool.clone(), self.events.clone());
            return Ok(ProfiledHosts { pool, applied: Vec::new(), active: Vec::new(), events });
        }
        let notify = |host: &WorkerName, step: String| {
            self.events.emit_host(host, HostEvent::ProfileStep(step));
        };
        let (program, sets) = (read_worker_program()?, all_sets()?);
        let context = self.apply_context(&program, &sets, &notify);
        let step = if named.profile.guests.is_some() { PreparationKind::Guests } else { PreparationKind::Profile };
        let hosts = self.iter().map(|(member, _)| member.worker.name().clone()).collect();
        record_start(folder, step, hosts, Some(named.name.to_string()))?;
        let each = self.iter().map(|(member, reached)| {
            let (host, context) = (reached.profile_host(&member.worker), &context);
            async move {
                let start = Instant::now();
                let result = apply(named, &host, context).await;
                (member, result, start.elapsed())
            }
        });
        let mut pool = WorkerPool { unreachable: self.pool.unreachable.clone(), ..WorkerPool::default() };
        let (mut active, mut failed) = (Vec::new(), Vec::new());
        let results = join_all(each).await;
        let ends = results.iter().flat_map(|(member, result, elapsed)| profile_ends(step, member, result, *elapsed));
        record_ends(folder, ends.collect())?;
        for (member, result, _) in results {
            match result {
                Ok(active_profile) => {
                    add_workers(&mut pool, member, &active_profile).await?;
                    self.report_unsupported(&active_profile.applied);
                    active.push(active_profile);
                }
                Err(error) => {
                    pool.unreachable.insert(error.host.clone(), error.to_string());
                    failed.push(error);
                }
            }
        }
        resolve_groups(&mut pool, self, &active);
        let last = if active.is_empty() && unmet == ProfileFailurePolicy::Abort { failed.pop() } else { None };
        failed.into_iter().for_each(|error| self.events.warn(error));
        if let Some(error) = last {
            return Err(error.into());
        }
        let applied = active.iter().map(|profile| profile.applied.clone()).collect();
        Ok(ProfiledHosts { pool, applied, active, events: self.events.clone() })
    }

    /// Checks on all hosts at the same time whether a profile can be applied.
    pub async fn preflight(&self, named: &NamedProfile) -> Result<Vec<Preflight>, SessionError> {
        if named.profile.is_empty() {
            return Ok(Vec::new());
        }
        let (program, sets) = (read_worker_program()?, all_sets()?);
        let context = self.apply_context(&program, &sets, &|_, _| {});
        let each = self.iter().map(|(member, reached)| {
            let (host, context) = (reached.profile_host(&member.worker), &context);
            async move { preflight(named, &host, context).await }
        });
        join_all(each).await.into_iter().map(|result| Ok(result?)).collect()
    }

    fn apply_context<'a>(
        &'a self,
        program: &'a Program,
        sets: &'a [KnobSet],
        notify: &'a (dyn Fn(&WorkerName, String) + Sync),
    ) -> ApplyContext<'a> {
        ApplyContext { options: &self.options, program, assets: &self.assets, sets, notify }
    }

    fn report_unsupported(&self, applied: &AppliedProfile) {
        let settings: Vec<_> = applied.knobs.iter().filter(|knob| knob.outcome.reason().is_some()).cloned().collect();
        if !settings.is_empty() {
            self.events.emit_host(&applied.host, HostEvent::UnsupportedSettings(settings));
        }
    }
}

impl HostConnection {
    fn profile_host<'a>(&'a self, worker: &'a Worker) -> ProfileHost<'a> {
        ProfileHost { worker, params: &self.params, address: self.address.as_ref() }
    }
}

/// The ends to record: of the starts of a host's guests, then of applying the profile to the host.
fn profile_ends(
    step: PreparationKind,
    host: &PooledWorker,
    result: &Result<ActiveProfile, ProfileError>,
    elapsed: Duration,
) -> Vec<PreparationEnd> {
    let guests = result.iter().flat_map(|active| &active.applied.guests).map(|guest| PreparationEnd {
        step,
        machine: guest.name.clone(),
        outcome: StepOutcome::Done,
        seconds: guest.started_in.seconds(),
    });
    let host = PreparationEnd {
        step,
        machine: host.worker.name().clone(),
        outcome: StepOutcome::from_result(result),
        seconds: elapsed.as_secs_f64(),
    };
    guests.chain([host]).collect()
}

/// Adds the workers of a host in its profile: its guests, or the host itself.
async fn add_workers(pool: &mut WorkerPool, host: &PooledWorker, active: &ActiveProfile) -> Result<(), SessionError> {
    if active.applied.profile.guests.is_none() {
        pool.workers.push(host.clone());
        return Ok(());
    }
    for (guest, created, path) in active.guests() {
        let address = Some(created.address.clone());
        let console = Some(GuestConsole { host: host.worker.clone(), path: path.to_owned() });
        pool.workers.push(PooledWorker { address, console, ..PooledWorker::with_facts(Worker::clone(guest)).await? });
    }
    pool.vm_hosts.push(host.clone());
    Ok(())
}

/// Resolves names of hosts and groups to workers; the name of a host with guests stands for its guests.
fn resolve_groups(pool: &mut WorkerPool, hosts: &ConnectedHosts, active: &[ActiveProfile]) {
    let guests = |host: &WorkerName| {
        let of_host = active.iter().find(|profile| profile.applied.host == *host && profile.guests().next().is_some());
        of_host.map(|profile| profile.applied.guests.iter().map(|guest| guest.name.clone()).collect::<Vec<_>>())
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
    pub(crate) async fn console_output(&self) -> Vec<(WorkerName, Vec<u8>)> {
        join_all(self.active.iter().map(ActiveProfile::consoles)).await.concat()
    }

    /// Reverts all hosts and warns about what could not be restored. Returns the hosts that could not be reverted.
    pub(crate) async fn revert(self) -> Vec<WorkerName> {
        let mut failed = Vec::new();
        for result in join_all(self.active.into_iter().map(revert_host)).await {
            match result {
                Ok((host, reverted)) => {
                    let is_conflict =
                        |change: &RevertedChange| matches!(change.outcome, RevertOutcome::Conflict { .. });
                    for change in reverted.into_iter().filter(is_conflict) {
                        self.events.emit_host(&host, HostEvent::RevertConflict(change));
                    }
                }
                Err(error) => {
                    failed.push(error.host.clone());
                    self.events.warn(error);
                }
            }
        }
        failed
    }
}

async fn revert_host(active: ActiveProfile) -> Result<(WorkerName, Vec<RevertedChange>), ProfileError> {
    let host = active.applied.host.clone();
    Ok((host, active.revert().await?))
}
