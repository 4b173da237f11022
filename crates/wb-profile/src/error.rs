//! Why a host was not put into a profile.

use wb_agent::{Fault, WorkerError};
use wb_fleet::FleetError;
use wb_fleet::inventory::ParseAddressError;
use wb_model::{Nanos, ProfileName, WorkerName};

use crate::image::{ImageError, ParseImageError, SeedError};

/// Why a host was not put into a profile. What had been done is put back.
#[derive(Debug, thiserror::Error)]
#[error("`{profile}` on `{host}`: {}", without_host_prefix(.host, .kind))]
pub struct ProfileError {
    /// The profile.
    pub profile: ProfileName,
    /// The host.
    pub host: WorkerName,
    /// Why.
    pub kind: Box<ProfileErrorKind>,
}

/// What is in the way of a profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileErrorKind {
    /// The agent, or what it was asked to change.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// Only root can.
    #[error("guests need root's rights, and the agent has a user's")]
    NotRoot,
    /// A knob that the host has not, or not with this value.
    #[error("the knob `{knob}` cannot be `{value}`: {reason}")]
    Knob {
        /// Its name.
        knob: String,
        /// The value in the profile.
        value: String,
        /// Why not.
        reason: String,
    },
    /// A file of a profile that cannot be put where it belongs.
    #[error("cannot write the file `{path}`: {reason}")]
    Unwritable {
        /// Its path.
        path: String,
        /// What is in the way.
        reason: String,
    },
    /// A command of a profile that is no shell script.
    #[error("invalid command `{command}`: expected a shell script: {output}")]
    Syntax {
        /// Its name.
        command: String,
        /// The end of what the shell printed.
        output: String,
    },
    /// A command of a profile that changed nothing.
    #[error("the command `{command}` ran, and what it is to make so is not so: `{is}` says no")]
    NotEffective {
        /// Its name.
        command: String,
        /// What says whether it is so.
        is: String,
    },
    /// Something that could not be put back.
    #[error("{fault}; put back all the same: {}", .restored.join(", "))]
    NotRestored {
        /// What, and why.
        fault: String,
        /// What was put back.
        restored: Vec<String>,
    },
    /// A program that is not there.
    #[error("there is no program `{program}`: `apt-get install {package}` brings it")]
    NoProgram {
        /// The program.
        program: String,
        /// Debian's package of it.
        package: &'static str,
    },
    /// A program that did not do what it should.
    #[error("`{program}` ended with {ending}: {said}")]
    Program {
        /// The program.
        program: String,
        /// How it ended.
        ending: String,
        /// The end of what it said.
        said: String,
    },
    /// libvirt does not answer.
    #[error("libvirt does not answer: {said}")]
    NoLibvirt {
        /// What virsh said.
        said: String,
    },
    /// The processor cannot, or may not, run guests.
    #[error("the processor runs no guests here: {said}")]
    NoKvm {
        /// How that was seen.
        said: String,
    },
    /// Kernel arguments of this machine, which is not rebooted.
    #[error("its kernel arguments would reboot this machine, and the run would end with it")]
    LocalReboot,
    /// A kernel that cannot be started once more.
    #[error("its kernel cannot be started with other arguments: {output}")]
    RebootUnavailable {
        /// What is in the way.
        output: String,
    },
    /// A network of libvirt's that is not defined.
    #[error("libvirt has no network `{network}`: {output}")]
    NoNetwork {
        /// Its name.
        network: String,
        /// The end of what virsh printed.
        output: String,
    },
    /// A program that libvirt does not run guests with.
    #[error("libvirt cannot run guests this way: {output}")]
    NoEmulator {
        /// The end of what virsh printed.
        output: String,
    },
    /// Not enough CPUs or memory.
    #[error("{0}")]
    NotEnoughResources(String),
    /// What guests' disks are made from.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A distribution without an image.
    #[error(transparent)]
    NoSuchImage(ParseImageError),
    /// Nobody knows which image is meant.
    #[error("neither the guests' distribution nor the host's is known")]
    NoDistribution,
    /// What a guest is told.
    #[error(transparent)]
    Seed(#[from] SeedError),
    /// A guest's name, as ssh should know it.
    #[error(transparent)]
    Address(#[from] ParseAddressError),
    /// The XML of a domain.
    #[error("{file}: {what}")]
    Xml {
        /// The file.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// A guest that has no address.
    #[error("the guest `{guest}` has no address after {limit}{}", console_suffix(.console))]
    NoAddress {
        /// The guest.
        guest: WorkerName,
        /// How long was waited.
        limit: Nanos,
        /// The end of what its console said.
        console: String,
    },
    /// A guest that ended.
    #[error("the guest `{guest}` ended while it started{}", console_suffix(.console))]
    Died {
        /// The guest.
        guest: WorkerName,
        /// The end of what its console said.
        console: String,
    },
    /// A guest that lets nobody in.
    #[error("the guest `{guest}` does not let us in after {limit}: {last}{}", console_suffix(.console))]
    NotReached {
        /// The guest.
        guest: WorkerName,
        /// How long was waited.
        limit: Nanos,
        /// Why the last try failed.
        last: Box<FleetError>,
        /// The end of what its console said.
        console: String,
    },
    /// A file of this machine.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What is wrong, without the host's name where it begins with that.
fn without_host_prefix(host: &WorkerName, why: &ProfileErrorKind) -> String {
    let said = why.to_string();
    said.strip_prefix(&format!("on `{host}`: ")).map(str::to_owned).unwrap_or(said)
}

fn console_suffix(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; its console ends:\n{said}") }
}

/// How an agent has root's rights.
const BE_ROOT: &str =
    "on another machine connect as root, or let this user use sudo without a password; here start it with sudo";

impl ProfileError {
    /// The way out, where there is one to be told.
    pub fn help(&self) -> Option<String> {
        self.kind.help()
    }
}

impl ProfileErrorKind {
    /// The way out, where one is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::LocalReboot => Some(
                "name other hosts with --hosts, and start the run from a machine that is not measured".to_owned(),
            ),
            Self::NoNetwork { .. } => Some("`virsh net-list --all` shows the networks; `network` of a profile names one".to_owned()),
            ProfileErrorKind::NoLibvirt { .. } => Some(
                "is it installed and running? `systemctl start libvirtd`; on Debian libvirt-daemon-system brings it".to_owned(),
            ),
            ProfileErrorKind::NoKvm { .. } => Some("`\"virt-type\": \"qemu\"` has them run in software".to_owned()),
            ProfileErrorKind::NotEnoughResources(_) => Some("--force-params says how many CPUs and how much memory guests may have".to_owned()),
            ProfileErrorKind::NoAddress { .. } | ProfileErrorKind::NotReached { .. } => {
                Some("`\"limit\": \"20min\"` waits longer; guests in software start slowly".to_owned())
            }
            ProfileErrorKind::Image(error) => error.help(),
            ProfileErrorKind::NoDistribution | ProfileErrorKind::NoSuchImage(_) => Some(
                "`\"image\": …` names one: of the catalogue, `built:bookworm`, a URL with its SHA-256, or a file of the host"
                    .to_owned(),
            ),
            ProfileErrorKind::NotRoot => Some(BE_ROOT.to_owned()),
            ProfileErrorKind::Worker(error) if matches!(error.fault(), Some(Fault::NotRoot)) => Some(BE_ROOT.to_owned()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_once_and_who_is_no_root_is_told_the_way_out() {
        let fault = WorkerError::Fault { worker: "a".parse().unwrap(), fault: Fault::NotRoot };
        let why = Box::new(ProfileErrorKind::from(fault));
        let error = ProfileError { profile: "mine".parse().unwrap(), host: "a".parse().unwrap(), kind: why };
        insta::assert_snapshot!(
            format!("{error}\n{}", error.help().unwrap()),
            @r"
        `mine` on `a`: changing the machine takes root's rights, and the agent has a user's
        on another machine connect as root, or let this user use sudo without a password; here start it with sudo
        "
        );
    }
}
