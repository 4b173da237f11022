use wb_agent::{Fault, WorkerError};
use wb_fleet::FleetError;
use wb_fleet::inventory::ParseAddressError;
use wb_model::{Nanos, ProfileName, WorkerName};
use wb_sys::PathError;

use crate::image::{ImageError, ParseImageError, SeedError};

/// Error of applying a profile to a host. Changes made before the error were reverted.
#[derive(Debug, thiserror::Error)]
#[error("`{profile}` on `{host}`: {}", .kind.message_on(.host))]
pub struct ProfileError {
    pub profile: ProfileName,
    pub host: WorkerName,
    pub kind: Box<ProfileErrorKind>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProfileErrorKind {
    /// An error of the agent, or of a change that it was to make.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("guests require root, and the agent runs as a user")]
    NotRoot,
    /// A knob that the host does not have, or that does not accept this value.
    #[error("cannot set knob `{knob}` to `{value}`: {reason}")]
    Knob {
        knob: String,
        value: String,
        reason: String,
        /// Whether the host lists the valid values, and this value is not among them.
        is_unknown_value: bool,
    },
    #[error("cannot write the file `{path}`: {reason}")]
    Unwritable { path: String, reason: String },
    #[error("invalid command `{command}`: expected a shell script: {output}")]
    Syntax {
        command: String,
        /// The last lines that the shell printed.
        output: String,
    },
    #[error("command `{command}` had no effect: its check `{is}` fails after it ran")]
    NotEffective { command: String, is: String },
    #[error("{fault}; restored nevertheless: {}", .restored.join(", "))]
    NotRestored {
        /// The item and the cause.
        fault: String,
        restored: Vec<String>,
    },
    #[error("no such program: `{program}`; `apt-get install {package}` installs it")]
    NoProgram { program: String, package: &'static str },
    #[error("`{program}` ended with {ending}: {output}")]
    Program {
        program: String,
        ending: String,
        /// The last lines of its output.
        output: String,
    },
    #[error("libvirt does not respond: {0}")]
    NoLibvirt(String),
    /// With the output of the check.
    #[error("KVM is not available: {0}")]
    NoKvm(String),
    #[error("its kernel parameters require a reboot of this machine, which would end the run")]
    LocalReboot,
    /// With the output of the check.
    #[error("cannot restart the kernel with other parameters: {0}")]
    RebootUnavailable(String),
    #[error("libvirt has no network `{network}`: {output}")]
    NoNetwork {
        network: String,
        /// The last lines that virsh printed.
        output: String,
    },
    /// With the last lines that virsh printed.
    #[error("libvirt cannot run guests this way: {0}")]
    NoEmulator(String),
    #[error("{0}")]
    NotEnoughResources(String),
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    NoSuchImage(ParseImageError),
    #[error("cannot choose an image: the distributions of the guests and of the host are unknown")]
    NoDistribution,
    #[error(transparent)]
    Seed(#[from] SeedError),
    /// A guest's name that cannot be an ssh host name.
    #[error(transparent)]
    Address(#[from] ParseAddressError),
    #[error("{file}: {message}")]
    Xml { file: String, message: String },
    #[error("virt-install-extra: {0}")]
    ExtraArguments(shell_words::ParseError),
    /// `console` has the last lines of the guest's console, in the next two as well.
    #[error("the guest `{guest}` has no address after {limit}{}", console_suffix(.console))]
    NoAddress { guest: WorkerName, limit: Nanos, console: String },
    #[error("the guest `{guest}` ended while it started{}", console_suffix(.console))]
    GuestEnded { guest: WorkerName, console: String },
    #[error("cannot log in to the guest `{guest}` after {limit}: {last}{}", console_suffix(.console))]
    NotReached { guest: WorkerName, limit: Nanos, last: Box<FleetError>, console: String },
    #[error(transparent)]
    File(#[from] PathError),
}

impl ProfileErrorKind {
    /// The message without a leading name of this host, which the caller prints itself.
    pub fn message_on(&self, host: &WorkerName) -> String {
        let message = self.to_string();
        message.strip_prefix(&format!("on `{host}`: ")).map(str::to_owned).unwrap_or(message)
    }
}

fn console_suffix(console: &str) -> String {
    if console.is_empty() { String::new() } else { format!("; its console ends:\n{console}") }
}

const ROOT_HELP: &str =
    "on another machine, connect as root or allow this user sudo without a password; on this machine, use sudo";

impl ProfileError {
    pub(crate) fn new(profile: &ProfileName, host: &WorkerName, kind: ProfileErrorKind) -> Self {
        Self { profile: profile.clone(), host: host.clone(), kind: Box::new(kind) }
    }

    pub fn help(&self) -> Option<String> {
        self.kind.help()
    }
}

impl ProfileErrorKind {
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::LocalReboot => "name other hosts with --hosts, and start the run from a machine that is not measured",
            Self::NoNetwork { .. } => {
                "`virsh net-list --all` lists the networks; set `network` in the profile to one of them"
            }
            Self::NoLibvirt { .. } => {
                "start it with `systemctl start libvirtd`, or install it (Debian's package libvirt-daemon-system)"
            }
            Self::NoKvm { .. } => "`\"virt-type\": \"qemu\"` emulates guests in software",
            Self::NotEnoughResources(_) => {
                "set the CPUs and memory for guests with --force-params, or their number and sizes in the profile: \
                 `force_no_vms`, `force_guest_cpus`, `force_guest_mem`"
            }
            Self::NoAddress { .. } | Self::NotReached { .. } => {
                "raise the limit with `\"limit\": \"20min\"`; guests emulated in software start slowly"
            }
            Self::Image(error) => return error.help(),
            Self::NoDistribution | Self::NoSuchImage(_) => {
                "set `\"image\"` to a name in the catalog, `built:bookworm`, a URL with its SHA-256, or a file on the host"
            }
            Self::NotRoot => ROOT_HELP,
            Self::Worker(error) if matches!(error.fault(), Some(Fault::NotRoot)) => ROOT_HELP,
            _ => return None,
        };
        Some(help.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_named_once_and_missing_root_has_a_hint() {
        let fault = WorkerError::Fault { worker: "a".parse().unwrap(), fault: Fault::NotRoot };
        let why = Box::new(ProfileErrorKind::from(fault));
        let error = ProfileError { profile: "mine".parse().unwrap(), host: "a".parse().unwrap(), kind: why };
        insta::assert_snapshot!(
            format!("{error}\n{}", error.help().unwrap()),
            @r"
        `mine` on `a`: cannot change system settings: the agent runs without root privileges
        on another machine, connect as root or allow this user sudo without a password; on this machine, use sudo
        "
        );
    }
}
