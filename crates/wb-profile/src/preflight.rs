//! Whether a host can be put into a profile, and what it would be then: found out before anything is changed.

use wb_agent::{Fault, Group, WorkerError};
use wb_model::{ProfileName, WorkerName};

use crate::apply::{HostAt, Means, required_knobs};
use crate::boot::{Boot, CommandLine};
use crate::error::{ProfileError, Why};
use crate::guest::{self, Outlook, Planned};
use crate::host::{last_lines, run};
use crate::profile::{HostFile, Named, Paired, Profile};
use crate::site::Site;

/// What was found out about a host and a profile.
#[derive(Debug)]
pub struct Preflight {
    /// The profile.
    pub profile: ProfileName,
    /// The host.
    pub host: WorkerName,
    /// The guests that would be made.
    pub guests: Vec<Planned>,
    /// Why the host cannot be put into the profile; none where nothing is in the way.
    pub obstacles: Vec<Why>,
    /// Why software would run the guests, although that was not asked for.
    pub software: Option<String>,
}

/// Finds out whether a host can be put into a profile: root's rights, knobs, the folders of files, the syntax of commands,
/// kexec for kernel arguments, and for guests libvirt, its network and emulator, virt-install, the image and the domain's
/// XML. Nothing stays of it on the host.
///
/// # Errors
/// When the host does not answer.
pub async fn preflight(named: &Named, host: &HostAt<'_>, means: &Means<'_>) -> Result<Preflight, ProfileError> {
    let failed =
        |why: Why| ProfileError { profile: named.name.clone(), host: host.worker.name().clone(), why: Box::new(why) };
    let group = host.worker.group().await.map_err(|error| failed(error.into()))?;
    let outlook = look(named, &Site::new(&group, host, means)).await;
    let torn = group.teardown().await;
    let outlook = outlook.map_err(failed)?;
    torn.map_err(|error| failed(error.into()))?;
    let Outlook { guests, obstacles, software } = outlook;
    Ok(Preflight { profile: named.name.clone(), host: host.worker.name().clone(), guests, obstacles, software })
}

async fn look(named: &Named, site: &Site<'_>) -> Result<Outlook, Why> {
    let profile = &named.profile;
    let mut obstacles = Vec::new();
    if takes_root(profile) && run(site.group, ["id", "-u"]).await?.trim() != "0" {
        let worker = site.group.worker().name().clone();
        obstacles.push(Why::Worker(WorkerError::Fault { worker, fault: Fault::NotRoot }));
    } else {
        obstacles.extend(unsettable(profile, site).await?);
        for file in &profile.files {
            obstacles.extend(unwritable(file, site).await?);
        }
    }
    for command in &profile.commands {
        obstacles.extend(unreadable(command, site.group).await?);
    }
    obstacles.extend(kernel(&profile.kernel_arguments, site).await?);
    let mut outlook = match &profile.guests {
        Some(guests) => guest::outlook(guests, site).await?,
        None => Outlook::default(),
    };
    outlook.obstacles.splice(0..0, obstacles);
    Ok(outlook)
}

/// Whether putting a host into a profile changes what only root may.
fn takes_root(profile: &Profile) -> bool {
    let Profile { sets, knobs, files, commands, kernel_arguments, guests, .. } = profile;
    let unchanged =
        [sets.is_empty(), knobs.is_empty(), files.is_empty(), commands.is_empty(), kernel_arguments.is_empty()];
    guests.is_some() || unchanged.contains(&false)
}

/// The knobs that the host has not, or not with this value. Commands and kernel arguments come before knobs and may bring
/// them: then nothing is known yet.
async fn unsettable(profile: &Profile, site: &Site<'_>) -> Result<Vec<Why>, Why> {
    if !profile.commands.is_empty() || !profile.kernel_arguments.is_empty() {
        return Ok(Vec::new());
    }
    let knobs = required_knobs(profile, site).await?;
    let refused = site.group.worker().unsettable(knobs.clone()).await?;
    let why = |(knob, reason): (String, String)| {
        let value = knobs.get(&knob).cloned().unwrap_or_default();
        Why::Knob { knob, value, reason }
    };
    Ok(refused.into_iter().map(why).collect())
}

/// Why a file cannot be put where it belongs; none where it can.
async fn unwritable(file: &HostFile, site: &Site<'_>) -> Result<Option<Why>, Why> {
    let reason = site.group.worker().refusal(file.step()).await?;
    Ok(reason.map(|reason| Why::Unwritable { path: file.path.clone(), reason }))
}

/// Why the shell cannot read a command; none where it can. Nothing of it is run.
async fn unreadable(command: &Paired, group: &Group) -> Result<Option<Why>, Why> {
    for script in [&command.is, &command.apply, &command.revert] {
        match run(group, ["sh", "-n", "-c", script]).await {
            Ok(_) => {}
            Err(Why::Program { said, .. }) => {
                return Ok(Some(Why::Syntax { command: command.name.clone(), output: last_lines(&said, 1) }));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

/// Why the host's kernel cannot be started with these arguments; none where it can, or has them.
async fn kernel(arguments: &[String], site: &Site<'_>) -> Result<Option<Why>, Why> {
    let next = CommandLine::of(site.group.worker()).await?.start(arguments);
    match next {
        // What an earlier run left goes with the next start of the machine.
        None | Some(Boot::Usual) => Ok(None),
        Some(_) if site.address.is_none() => Ok(Some(Why::Here)),
        Some(next) => can_start(&next, site.group).await,
    }
}

async fn can_start(next: &Boot, group: &Group) -> Result<Option<Why>, Why> {
    match run(group, next.check_words()).await {
        Ok(_) => Ok(None),
        Err(Why::Program { said, .. }) => Ok(Some(Why::NoReboot { output: last_lines(&said, 1) })),
        Err(other) => Err(other),
    }
}
