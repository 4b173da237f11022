//! Applies a profile to a host and reverts it.
//!
//! All changes belong to one group of the host's agent, which records the previous state in the undo log. The host is
//! therefore restored when the group is torn down, when the agent ends for any reason, and, if the agent was killed,
//! when the next agent starts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_agent::{Fault, RevertedChange, Scratch, TeardownGroup, TeardownReport, Worker, WorkerError};
use wb_fleet::{Address, ConnectOptions, HostParams, Program};
use wb_knobs::KnobSet;
use wb_knobs::knobs::smt::Smt;
use wb_knobs::tune::{KnobResult, KnobSetting};
use wb_model::{ProfileName, WorkerName};
use wb_sys::undo::{ManagedResource, RevertOutcome};
use wb_sys::user_folders;

use crate::error::{ProfileError, ProfileErrorKind};
use crate::guest::{self, GuestRecord};
use crate::host::run;
use crate::host_context::HostContext;
use crate::profile::{NamedProfile, Profile, ReversibleCommand};

/// A host that a profile is applied to.
pub struct ProfileHost<'a> {
    pub worker: &'a Worker,
    /// Its parameters from the inventory and the command line.
    pub params: &'a HostParams,
    /// None for this machine.
    pub address: Option<&'a Address>,
}

/// Settings shared by all hosts of a run.
pub struct ApplyContext<'a> {
    pub options: &'a ConnectOptions,
    /// The program that becomes the agent of guests.
    pub program: &'a Program,
    /// Folders with files that belong to hosts.
    pub assets: &'a [PathBuf],
    pub sets: &'a [KnobSet],
    /// Called with a message before each slow step.
    pub notify: &'a (dyn Fn(&WorkerName, String) + Sync),
}

/// Record of a profile as applied to a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AppliedProfile {
    /// The profile's name.
    pub name: ProfileName,
    /// The profile, including the parameters given where it was selected.
    pub profile: Profile,
    /// The host.
    pub host: WorkerName,
    /// Knobs and values of its sets (which are separate files), by set name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sets: BTreeMap<String, BTreeMap<String, String>>,
    /// The result for each knob.
    pub knobs: Vec<KnobResult>,
    /// Its guests.
    pub guests: Vec<GuestRecord>,
}

/// A host with a profile applied. Dropping this reverts the host too, but without the report of [`Self::revert`].
pub struct ActiveProfile {
    pub applied: AppliedProfile,
    /// The workers of its guests; if empty, the host itself measures.
    guests: Vec<Worker>,
    /// Paths of their console files on the host.
    consoles: Vec<String>,
    group: TeardownGroup,
    guest_files: Option<(Scratch, guest::GuestSshKeys)>,
}

/// Applies a profile to a host. If any part of it fails, the host is restored.
pub async fn apply(
    named: &NamedProfile,
    host: &ProfileHost<'_>,
    shared: &ApplyContext<'_>,
) -> Result<ActiveProfile, ProfileError> {
    let failed = |reason: ProfileErrorKind| ProfileError::new(&named.name, host.worker.name(), reason);
    let group = host.worker.new_group().await.map_err(|error| failed(error.into()))?;
    let context = HostContext::new(&group, host, shared);
    match make_changes(named, &context, shared.sets).await {
        Ok((knobs, running)) => {
            let (guests, guest_files) = match running {
                None => (Vec::new(), None),
                Some(guest::RunningGuests { all, folder, keys }) => (all, Some((folder, keys))),
            };
            let (guests, records, consoles): (Vec<Worker>, Vec<GuestRecord>, Vec<String>) =
                guests.into_iter().collect();
            let applied = AppliedProfile {
                name: named.name.clone(),
                profile: named.profile.without_secrets(),
                host: host.worker.name().clone(),
                sets: set_values(&named.profile, shared.sets),
                knobs,
                guests: records,
            };
            Ok(ActiveProfile { applied, guests, consoles, group, guest_files })
        }
        Err(reason) => {
            for problem in cleanup_problems(group.teardown().await) {
                (shared.notify)(host.worker.name(), format!("cannot restore the host completely: {problem}"));
            }
            Err(failed(reason))
        }
    }
}

/// What was not restored after a profile could not be applied.
fn cleanup_problems(teardown: Result<TeardownReport, WorkerError>) -> Vec<String> {
    let TeardownReport { killed: _, unkillable, reverted, cleanup_errors, revert_error, folder_error } = match teardown
    {
        Ok(report) => report,
        Err(error) => return vec![error.to_string()],
    };
    let processes = unkillable.into_iter().map(|pid| Fault::Unkillable { pid }.to_string());
    let conflicts = reverted.iter().filter(|change| matches!(change.outcome, RevertOutcome::Conflict { .. }));
    let conflicts = conflicts.map(|RevertedChange { description, outcome }| format!("{description}: {outcome}"));
    let folder_error = folder_error.map(|fault| fault.to_string());
    cleanup_errors.into_iter().chain(revert_error).chain(conflicts).chain(processes).chain(folder_error).collect()
}

/// The knobs and values of a profile's sets, by set name.
pub fn set_values(profile: &Profile, sets: &[KnobSet]) -> BTreeMap<String, BTreeMap<String, String>> {
    let values = |set: &KnobSet| set.knobs.iter().map(|target| (target.key(), target.value.clone())).collect();
    let named = sets.iter().filter(|set| profile.sets.contains(&set.name));
    named.map(|set| (set.name.clone(), values(set))).collect()
}

async fn make_changes(
    named: &NamedProfile,
    context: &HostContext<'_>,
    sets: &[KnobSet],
) -> Result<(Vec<KnobResult>, Option<guest::RunningGuests>), ProfileErrorKind> {
    let profile = &named.profile;
    let mut knobs = match one_thread_per_core(context).await? {
        Some(setting) => context.group.tune(vec![setting]).await?.0,
        None => Vec::new(),
    };
    for set in profile.sets.iter().filter_map(|name| sets.iter().find(|set| set.name == *name)) {
        knobs.extend(context.group.tune_best_effort(last_by_key(set.knobs.iter().cloned())).await?.0);
    }
    for file in &profile.files {
        context.group.apply_change(file.resource(), Some(file.text.clone())).await?;
    }
    for paired in &profile.commands {
        context.group.apply_change(command_resource(paired), Some(APPLIED.to_owned())).await?;
        require_applied(paired, context).await?;
    }
    if !profile.knobs.is_empty() {
        knobs.extend(context.group.tune(profile.knob_settings().collect()).await?.0);
    }
    let running = match &profile.guests {
        None => None,
        Some(guests) => Some(guest::start(guests, context).await?),
    };
    Ok((knobs, running))
}

/// The knobs that a profile requires to be set; knobs of its sets are optional and not included.
pub(crate) async fn required_knobs(
    profile: &Profile,
    context: &HostContext<'_>,
) -> Result<Vec<KnobSetting>, ProfileErrorKind> {
    Ok(last_by_key(one_thread_per_core(context).await?.into_iter().chain(profile.knob_settings())))
}

/// The last setting of each key, in the order of keys.
fn last_by_key(settings: impl Iterator<Item = KnobSetting>) -> Vec<KnobSetting> {
    settings.map(|setting| (setting.key(), setting)).collect::<BTreeMap<_, _>>().into_values().collect()
}

/// The knob setting that leaves one thread per core, if the host's parameters say `disable-smt` and SMT is on. It is
/// set before CPUs are counted.
async fn one_thread_per_core(context: &HostContext<'_>) -> Result<Option<KnobSetting>, ProfileErrorKind> {
    if context.params.disable_smt != Some(true) {
        return Ok(None);
    }
    let facts = context.group.worker().facts().await?;
    let is_disabled = facts.one_cpu_per_core().len() == facts.cpus.len();
    Ok((!is_disabled).then(|| KnobSetting::for_knob(&Smt, None, "off")))
}

/// Requires that a command had its effect, which its exit status alone does not prove.
async fn require_applied(paired: &ReversibleCommand, context: &HostContext<'_>) -> Result<(), ProfileErrorKind> {
    let checked = run(context.group, ["sh", "-c", &paired.check]).await;
    checked.map(drop).map_err(|_| ProfileErrorKind::NotEffective {
        command: paired.name.clone(),
        is: paired.check.trim().to_owned(),
    })
}

const APPLIED: &str = "applied";

fn command_resource(paired: &ReversibleCommand) -> ManagedResource {
    let shell = |script: String, argument: Option<&str>| {
        let fixed = ["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
        fixed.into_iter().chain(argument.map(str::to_owned)).collect()
    };
    let ReversibleCommand { name, check: is, apply, revert } = paired;
    ManagedResource::Command {
        name: name.clone(),
        read: shell(format!("if ( {is}\n) >&2; then printf {APPLIED}; else printf none; fi"), None),
        write: shell(format!("case $1 in {APPLIED}) {apply}\n;; *) {revert}\n;; esac >&2"), Some("{}")),
    }
}

impl ActiveProfile {
    pub async fn consoles(&self) -> Vec<(WorkerName, Vec<u8>)> {
        let mut all = Vec::new();
        for (guest, path) in self.applied.guests.iter().zip(&self.consoles) {
            all.push((guest.name.clone(), guest::console(self.group.worker(), path).await));
        }
        all
    }

    /// The guests, each with its record and the path of its console on the host.
    pub fn guests(&self) -> impl Iterator<Item = (&Worker, &GuestRecord, &str)> {
        let records = self.applied.guests.iter().zip(&self.consoles);
        self.guests.iter().zip(records).map(|(guest, (record, console))| (guest, record, console.as_str()))
    }

    /// Restores the host; returns the result of each change, the last one first. What cannot be restored stays in the
    /// host's undo log, and the next agent there tries again.
    pub async fn revert(self) -> Result<Vec<RevertedChange>, ProfileError> {
        let Self { applied, guests, consoles: _, group, guest_files } = self;
        let host = group.worker().name().clone();
        for guest in guests {
            // A guest that no longer responds is stopped by the teardown.
            let _ = guest.close().await;
        }
        let teardown = group.teardown().await;
        // A guest that could not be stopped keeps its files. The next agent stops it and removes them.
        let mut kept = None;
        if let Some((folder, keys)) = guest_files {
            kept = folder.close().await.err();
            // The next start removes the keys.
            let _ = keys.close().await;
        }
        let failed = |kind| ProfileError::new(&applied.name, &host, kind);
        match teardown {
            // A process that hangs in the kernel holds no change: the host is restored. A profile has no cleanup
            // commands.
            Ok(TeardownReport { reverted, revert_error: None, folder_error: None, .. }) => Ok(reverted),
            Ok(TeardownReport { revert_error: None, folder_error: Some(fault), .. }) => {
                Err(failed(WorkerError::Fault { worker: host.clone(), fault }.into()))
            }
            Ok(TeardownReport { reverted, revert_error: Some(fault), .. }) => {
                let (restored, left): (Vec<_>, Vec<_>) =
                    reverted.into_iter().partition(|change| change.outcome == RevertOutcome::Restored);
                let left =
                    left.iter().map(|RevertedChange { description, outcome }| format!("{description}: {outcome}"));
                let kept = kept.map(|error| error.to_string());
                let fault = std::iter::once(fault).chain(left).chain(kept).collect::<Vec<_>>().join("; ");
                let restored = restored.into_iter().map(|change| change.description).collect();
                Err(failed(ProfileErrorKind::NotRestored { fault, restored }))
            }
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// The folders with users' own profiles: in the user's configuration, and among assets.
pub fn profile_folders(assets: &[PathBuf]) -> Vec<PathBuf> {
    user_folders::config().iter().chain(assets).map(|folder| folder.join("profiles.d")).collect()
}
