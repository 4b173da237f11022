//! Errors of provisioning hosts.

use wb_agent::WorkerError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseProvisionerError {
    #[error("invalid provisioner `{0}`: expected NAME or NAME:{{JSON}}, such as command:{{\"command\": \"…\"}}")]
    Name(String),
    #[error("invalid parameters of provisioner `{name}`: {reason}")]
    Json { name: String, reason: String },
    #[error("unknown placeholder `{}`: expected one of {}", .0, super::target::Placeholder::all())]
    Place(String),
    #[error("invalid command `{0}`: it is empty, or a quote is not closed")]
    Command(String),
    #[error("cannot read the playbook {path}: {reason}")]
    Playbook { path: String, reason: String },
}

/// Error that prevents a provisioner from running.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    #[error("the provisioner `{name}` requires `{program}`, which is not in PATH")]
    Missing {
        name: String,
        program: String,
        /// The package that contains it, if known.
        package: Option<&'static str>,
    },
    #[error("cannot run the provisioner `{name}`: {source}")]
    Worker { name: String, source: Box<WorkerError> },
}

impl ProvisionError {
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Missing { package: Some(package), .. } => {
                Some(format!("install the package `{package}` on this machine"))
            }
            Self::Missing { .. } => {
                Some("write an executable of this name to define your own provisioner: docs/profiles.md".to_owned())
            }
            Self::Worker { .. } => None,
        }
    }
}
