//! Errors in the selection and preparation of hosts.

use std::path::PathBuf;

use wb_model::WorkerName;

/// Why nothing can be measured on hosts as requested.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("the inventory {} has no hosts", .0.display())]
    EmptyInventory(PathBuf),
    #[error("duplicate host name `{0}`")]
    DuplicateName(WorkerName),
    #[error("`{0}` and `{1}` are both this machine")]
    SameMachine(WorkerName, WorkerName),
    /// Parameters for a host, by name or address, that is not selected.
    #[error("--force-params names unknown host `{0}`")]
    UnknownForcedHost(String),
    /// A request that would reboot this machine: an option, or the kernel parameters of a profile.
    #[error("{0} would reboot this machine, and the run would end with it")]
    LocalReboot(String),
    /// The preparation failed on every host.
    #[error("no host left to measure on")]
    NoneLeft,
}

impl HostError {
    pub fn help(&self) -> &'static str {
        match self {
            Self::EmptyInventory(..) => "`[hosts.NAME]` defines a host; docs/hosts.md has an example",
            Self::DuplicateName(..) => "give each host a unique name: `NAME:ADDRESS`",
            Self::SameMachine(..) => "name each machine once; `NAME:ADDRESS` names another machine",
            Self::UnknownForcedHost(..) => "use the name or address of a host of this run",
            Self::LocalReboot(..) => {
                "select other hosts with --hosts, and start the run from a machine that is not measured"
            }
            Self::NoneLeft => {
                "the run folder has the logs; to retry what failed, repeat the command with `--into` and this folder"
            }
        }
    }
}
