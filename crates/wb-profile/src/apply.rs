//! Putting a host into a profile, and back.
//!
//! All that is changed belongs to one group of the host's agent, which notes in the undo log what was there before. So a
//! host is as it was when the group is torn down, when the agent ends for whatever reason, and, where it was killed, when
//! the next one starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_agent::{Group, RestoredChange, Scratch, TeardownReport, Worker};
use wb_fleet::{Address, ConnectOptions, HostParams, Program};
use wb_knobs::KnobSet;
use wb_knobs::tune::KnobResult;
use wb_model::{ProfileName, WorkerName};
use wb_sys::undo::Step;

use crate::apply_site::ApplySite;
use crate::error::{ProfileError, ProfileErrorKind};
use crate::guest::{self, GuestRecord};
use crate::host::run;
use crate::profile::{NamedProfile, Profile, ReversibleCommand};

/// A host that a profile is for.
pub struct ProfileHost<'a> {
    /// The handle on it.
    pub worker: &'a Worker,
    /// What is said of it.
    pub params: &'a HostParams,
    /// Where it is; none where it is this machine.
    pub address: Option<&'a Address>,
}

/// What all hosts of a run have in common.
pub struct ApplyContext<'a> {
    /// How hosts and guests are connected to.
    pub options: &'a ConnectOptions,
    /// The program that becomes the agent of guests.
    pub program: &'a Program,
    /// Folders with what belongs to hosts.
    pub assets: &'a [PathBuf],
    /// The sets of knobs that there are.
    pub sets: &'a [KnobSet],
    /// Whom to tell what takes a while.
    pub notify: &'a (dyn Fn(&WorkerName, String) + Sync),
}

/// What a host was made to be, for the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AppliedProfile {
    /// The profile's name.
    pub name: ProfileName,
    /// The profile, with what was said where it was asked for.
    pub profile: Profile,
    /// The host.
    pub host: WorkerName,
    /// The knobs and values of its sets, which are files of their own, by the set's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sets: BTreeMap<String, BTreeMap<String, String>>,
    /// What became of each knob.
    pub knobs: Vec<KnobResult>,
    /// Its guests.
    pub guests: Vec<GuestRecord>,
}

/// A host in its profile. Without [`Applied::revert`] it comes back when this is dropped, and nobody is told how.
pub struct ActiveProfile {
    /// What it is like.
    pub standing: AppliedProfile,
    /// The workers of its guests; the host itself measures where there are none.
    guests: Vec<Worker>,
    /// Where on the host their consoles are.
    consoles: Vec<String>,
    group: Group,
    guest_files: Option<(Scratch, guest::GuestSshKeys)>,
}

/// Puts a host into a profile.
///
/// # Errors
/// When something of it cannot be done: then the host is as it was.
pub async fn apply(
    named: &NamedProfile,
    host: &ProfileHost<'_>,
    means: &ApplyContext<'_>,
) -> Result<ActiveProfile, ProfileError> {
    let failed = |why: ProfileErrorKind| ProfileError {
        profile: named.name.clone(),
        host: host.worker.name().clone(),
        kind: Box::new(why),
    };
    let group = host.worker.new_group().await.map_err(|error| failed(error.into()))?;
    let site = ApplySite::new(&group, host, means);
    match apply_steps(named, &site, means.sets).await {
        Ok((knobs, running)) => {
            let (guests, kept) = match running {
                None => (Vec::new(), None),
                Some(guest::RunningGuests { all, folder, keys }) => (all, Some((folder, keys))),
            };
            let (guests, made, consoles): (Vec<Worker>, Vec<GuestRecord>, Vec<String>) = guests.into_iter().collect();
            let standing = AppliedProfile {
                name: named.name.clone(),
                profile: named.profile.without_secrets(),
                host: host.worker.name().clone(),
                sets: set_values(&named.profile, means.sets),
                knobs,
                guests: made,
            };
            Ok(ActiveProfile { standing, guests, consoles, group, guest_files: kept })
        }
        Err(why) => {
            let fault = group.teardown().await.map_or_else(|error| Some(error.to_string()), |teardown| teardown.fault);
            if let Some(fault) = fault {
                (means.notify)(host.worker.name(), format!("not all is as it was: {fault}"));
            }
            Err(failed(why))
        }
    }
}

/// The knobs and values of a profile's sets, by the set's name.
pub fn set_values(profile: &Profile, sets: &[KnobSet]) -> BTreeMap<String, BTreeMap<String, String>> {
    let values = |set: &KnobSet| set.knobs.iter().map(|wanted| (wanted.key(), wanted.value.clone())).collect();
    let named = sets.iter().filter(|set| profile.sets.contains(&set.name));
    named.map(|set| (set.name.clone(), values(set))).collect()
}

async fn apply_steps(
    named: &NamedProfile,
    site: &ApplySite<'_>,
    sets: &[KnobSet],
) -> Result<(Vec<KnobResult>, Option<guest::RunningGuests>), ProfileErrorKind> {
    let profile = &named.profile;
    let mut knobs = match one_thread_per_core(site).await? {
        Some((knob, value)) => site.group.tune(BTreeMap::from([(knob, value)])).await?,
        None => Vec::new(),
    };
    for set in profile.sets.iter().filter_map(|name| sets.iter().find(|set| set.name == *name)) {
        let wanted = set.knobs.iter().map(|wanted| (wanted.key(), wanted.value.clone())).collect();
        knobs.extend(site.group.tune_best_effort(wanted).await?);
    }
    for file in &profile.files {
        site.group.apply_step(file.step(), Some(file.text.clone())).await?;
    }
    for paired in &profile.commands {
        site.group.apply_step(command_step(paired), Some(APPLIED.to_owned())).await?;
        require_applied(paired, site).await?;
    }
    if !profile.knobs.is_empty() {
        knobs.extend(site.group.tune(profile_knobs(profile).collect()).await?);
    }
    let running = match &profile.guests {
        None => None,
        Some(guests) => Some(guest::start(guests, site).await?),
    };
    Ok((knobs, running))
}

/// The knobs without which a host is not in a profile; those of its sets are not among them.
pub(crate) async fn required_knobs(
    profile: &Profile,
    site: &ApplySite<'_>,
) -> Result<BTreeMap<String, String>, ProfileErrorKind> {
    Ok(one_thread_per_core(site).await?.into_iter().chain(profile_knobs(profile)).collect())
}

fn profile_knobs(profile: &Profile) -> impl Iterator<Item = (String, String)> {
    profile.knobs.iter().map(|(name, value)| (name.clone(), value.to_string()))
}

/// The knob by which every core of a host runs one thread, where its parameters say `disable-smt` and one runs more. It
/// is set before CPUs are counted for anything.
async fn one_thread_per_core(site: &ApplySite<'_>) -> Result<Option<(String, String)>, ProfileErrorKind> {
    if site.params.disable_smt != Some(true) {
        return Ok(None);
    }
    let facts = site.group.worker().facts().await?;
    let is_so = facts.one_cpu_per_core().len() == facts.cpus.len();
    Ok((!is_so).then(|| ("smt".to_owned(), "off".to_owned())))
}

/// That a command was carried out says nothing of what came of it.
async fn require_applied(paired: &ReversibleCommand, site: &ApplySite<'_>) -> Result<(), ProfileErrorKind> {
    let is_so = run(site.group, ["sh", "-c", &paired.check]).await;
    is_so.map(drop).map_err(|_| ProfileErrorKind::NotEffective {
        command: paired.name.clone(),
        is: paired.check.trim().to_owned(),
    })
}

/// The state of commands that were carried out.
const APPLIED: &str = "applied";

fn command_step(paired: &ReversibleCommand) -> Step {
    let words = |script: String, argument: Option<&str>| {
        let fixed = ["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
        fixed.into_iter().chain(argument.map(str::to_owned)).collect()
    };
    let ReversibleCommand { name, check: is, apply, revert } = paired;
    Step::Command {
        name: name.clone(),
        read: words(format!("if ( {is}\n) >&2; then printf {APPLIED}; else printf none; fi"), None),
        write: words(format!("case $1 in {APPLIED}) {apply}\n;; *) {revert}\n;; esac >&2"), Some("{}")),
    }
}

impl ActiveProfile {
    /// What the consoles of its guests have said.
    pub async fn consoles(&self) -> Vec<(WorkerName, Vec<u8>)> {
        let mut all = Vec::new();
        for (guest, path) in self.standing.guests.iter().zip(&self.consoles) {
            all.push((guest.name.clone(), guest::console(self.group.worker(), path).await));
        }
        all
    }

    /// The guests with how they were made and where on the host their consoles are.
    pub fn guests(&self) -> impl Iterator<Item = (&Worker, &GuestRecord, &str)> {
        let made = self.standing.guests.iter().zip(&self.consoles);
        self.guests.iter().zip(made).map(|(guest, (made, console))| (guest, made, console.as_str()))
    }

    /// Puts the host back; what became of each change, the last first.
    ///
    /// # Errors
    /// When something could not be put back: it stays in the host's undo log, and the next agent there tries again.
    pub async fn revert(self) -> Result<Vec<RestoredChange>, ProfileError> {
        let Self { standing, guests, consoles: _, group, guest_files: kept } = self;
        let host = group.worker().name().clone();
        for guest in guests {
            // A guest that does not answer any more is ended all the same.
            let _ = guest.close().await;
        }
        let torn = group.teardown().await;
        if let Some((folder, keys)) = kept {
            // What is not removed now is removed by the next agent.
            let _ = folder.close().await;
            let _ = keys.close().await;
        }
        match torn {
            Ok(TeardownReport { reverted: put_back, fault: None, .. }) => Ok(put_back),
            Ok(TeardownReport { reverted: put_back, fault: Some(fault), .. }) => {
                let restored = put_back.into_iter().map(|one| one.what).collect();
                Err(ProfileError {
                    profile: standing.name,
                    host,
                    kind: Box::new(ProfileErrorKind::NotRestored { fault, restored }),
                })
            }
            Err(error) => Err(ProfileError { profile: standing.name, host, kind: Box::new(error.into()) }),
        }
    }
}

/// The folders in which users have profiles of their own: in theirs, and among assets.
pub fn profile_folders(config: Option<&Path>, assets: &[PathBuf]) -> Vec<PathBuf> {
    let own = config.map(|config| config.join("weighbridge/profiles.d"));
    own.into_iter().chain(assets.iter().map(|folder| folder.join("profiles.d"))).collect()
}
