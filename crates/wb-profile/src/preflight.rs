//! Checks whether a profile can be applied to a host, before anything is changed.

use wb_agent::{Fault, TeardownGroup, WorkerError};
use wb_knobs::tune::{KnobRefusal, KnobSetting};
use wb_model::{ProfileName, WorkerName};

use crate::apply::{ApplyContext, ProfileHost, required_knobs};
use crate::boot::{Boot, CommandLine};
use crate::error::{ProfileError, ProfileErrorKind};
use crate::guest::{self, GuestPreflight, PlannedGuest};
use crate::host::{last_lines, run};
use crate::host_context::HostContext;
use crate::profile::{HostFile, NamedProfile, Profile, ReversibleCommand};

/// Result of checking a profile on a host.
#[derive(Debug)]
pub struct Preflight {
    pub profile: ProfileName,
    pub host: WorkerName,
    pub guests: Vec<PlannedGuest>,
    pub obstacles: Vec<ProfileErrorKind>,
    /// Why guests would be emulated in software although that was not requested.
    pub software: Option<String>,
}

/// Checks whether a profile can be applied to a host: root, knobs, the folders of files, the syntax of commands, kexec
/// for kernel parameters, and for guests libvirt, its network and emulator, virt-install, the image and the domain's
/// XML. Nothing remains on the host.
pub async fn preflight(
    named: &NamedProfile,
    host: &ProfileHost<'_>,
    shared: &ApplyContext<'_>,
) -> Result<Preflight, ProfileError> {
    let failed = |reason: ProfileErrorKind| ProfileError::new(&named.name, host.worker.name(), reason);
    let group = host.worker.new_group().await.map_err(|error| failed(error.into()))?;
    let outlook = inspect(named, &HostContext::new(&group, host, shared)).await;
    let closed = group.close().await;
    let outlook = outlook.map_err(failed)?;
    closed.map_err(|error| failed(error.into()))?;
    let GuestPreflight { guests, obstacles, software, required_knobs: _ } = outlook;
    Ok(Preflight { profile: named.name.clone(), host: host.worker.name().clone(), guests, obstacles, software })
}

async fn inspect(named: &NamedProfile, context: &HostContext<'_>) -> Result<GuestPreflight, ProfileErrorKind> {
    let profile = &named.profile;
    let mut obstacles = Vec::new();
    let lacks_root = requires_root(profile) && run(context.group, ["id", "-u"]).await?.trim() != "0";
    if lacks_root {
        let worker = context.group.worker().name().clone();
        obstacles.push(ProfileErrorKind::Worker(WorkerError::Fault { worker, fault: Fault::NotRoot }));
    } else {
        obstacles.extend(check_knobs(profile, required_knobs(profile, context).await?, context).await?);
        for file in &profile.files {
            obstacles.extend(check_file(file, context).await?);
        }
    }
    for command in &profile.commands {
        obstacles.extend(check_syntax(command, context.group).await?);
    }
    obstacles.extend(check_kernel_arguments(&profile.kernel_arguments, context).await?);
    let mut outlook = match &profile.guests {
        Some(guests) => guest::preflight(guests, context).await?,
        None => GuestPreflight::default(),
    };
    if !lacks_root {
        obstacles.extend(check_knobs(profile, std::mem::take(&mut outlook.required_knobs), context).await?);
    }
    outlook.obstacles.splice(0..0, obstacles);
    Ok(outlook)
}

fn requires_root(profile: &Profile) -> bool {
    let Profile { sets, knobs, files, commands, kernel_arguments, guests, .. } = profile;
    let are_empty =
        [sets.is_empty(), knobs.is_empty(), files.is_empty(), commands.is_empty(), kernel_arguments.is_empty()];
    guests.is_some() || are_empty.contains(&false)
}

/// The knobs that the host does not have or cannot set to the requested value. Commands and kernel parameters are
/// applied before knobs and may add some: then nothing can be checked yet.
async fn check_knobs(
    profile: &Profile,
    knobs: Vec<KnobSetting>,
    context: &HostContext<'_>,
) -> Result<Vec<ProfileErrorKind>, ProfileErrorKind> {
    if !profile.commands.is_empty() || !profile.kernel_arguments.is_empty() {
        return Ok(Vec::new());
    }
    let refused = context.group.worker().check_knobs(knobs).await?;
    let error = |(setting, KnobRefusal { reason, is_unknown_value }): (KnobSetting, KnobRefusal)| {
        ProfileErrorKind::Knob { knob: setting.key(), value: setting.value, reason, is_unknown_value }
    };
    Ok(refused.into_iter().map(error).collect())
}

async fn check_file(file: &HostFile, context: &HostContext<'_>) -> Result<Option<ProfileErrorKind>, ProfileErrorKind> {
    let reason = context.group.worker().refusal(file.resource()).await?;
    Ok(reason.map(|reason| ProfileErrorKind::Unwritable { path: file.path.clone(), reason }))
}

/// The syntax error in a command's scripts, if any. Nothing is executed.
async fn check_syntax(
    command: &ReversibleCommand,
    group: &TeardownGroup,
) -> Result<Option<ProfileErrorKind>, ProfileErrorKind> {
    for script in [&command.check, &command.apply, &command.revert] {
        match run(group, ["sh", "-n", "-c", script]).await {
            Ok(_) => {}
            Err(ProfileErrorKind::Program { output, .. }) => {
                return Ok(Some(ProfileErrorKind::Syntax {
                    command: command.name.clone(),
                    output: last_lines(&output, 1),
                }));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

/// The reason why the host's kernel cannot be restarted with these arguments; none if it can, or already has them.
async fn check_kernel_arguments(
    arguments: &[String],
    context: &HostContext<'_>,
) -> Result<Option<ProfileErrorKind>, ProfileErrorKind> {
    let next = CommandLine::read(context.group.worker()).await?.required_boot(arguments);
    match next {
        // Arguments left by an earlier run vanish at the next ordinary boot.
        None | Some(Boot::Default) => Ok(None),
        Some(_) if context.address.is_none() => Ok(Some(ProfileErrorKind::LocalReboot)),
        Some(next) => check_boot(&next, context.group).await,
    }
}

async fn check_boot(next: &Boot, group: &TeardownGroup) -> Result<Option<ProfileErrorKind>, ProfileErrorKind> {
    match run(group, next.check_command()).await {
        Ok(_) => Ok(None),
        Err(ProfileErrorKind::Program { output, .. }) => {
            Ok(Some(ProfileErrorKind::RebootUnavailable(last_lines(&output, 1))))
        }
        Err(other) => Err(other),
    }
}
