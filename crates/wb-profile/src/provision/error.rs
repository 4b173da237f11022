//! Why hosts could not be provisioned.

use wb_agent::WorkerError;

/// Something that is no provisioner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseProvisionerError {
    /// Its name cannot be one.
    #[error("`{name}` is no provisioner: NAME or NAME:{{JSON}} is expected, such as command:{{\"command\": \"…\"}}")]
    Name {
        /// What was given.
        name: String,
    },
    /// What it is given is not what it takes.
    #[error("the provisioner `{name}`: {why}")]
    Json {
        /// Which.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// Something in the place of a host's property that none has.
    #[error("a command has no `{place}`; there are {}", super::target::Placeholder::all())]
    Place {
        /// What was written.
        place: String,
    },
    /// A command that is none.
    #[error("`{command}` is no command: it is empty, or a quote is open")]
    Command {
        /// What was given.
        command: String,
    },
    /// A file that cannot be read.
    #[error("the playbook {path} cannot be read: {why}")]
    Playbook {
        /// Which.
        path: String,
        /// What the system said.
        why: String,
    },
}

/// Why a provisioner could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// Its program is not here.
    #[error("the provisioner `{name}` needs `{program}`, which is not on the path")]
    Missing {
        /// Which provisioner.
        name: String,
        /// The program.
        program: String,
        /// The package that has it, where that is known.
        package: Option<&'static str>,
    },
    /// It could not be started.
    #[error("the provisioner `{name}` cannot be run: {source}")]
    Worker {
        /// Which.
        name: String,
        /// Why.
        source: WorkerError,
    },
}

impl ProvisionError {
    /// The way out, where there is one to be told.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Missing { package: Some(package), .. } => {
                Some(format!("install the package `{package}` on this machine"))
            }
            Self::Missing { .. } => {
                Some("a provisioner of your own is an executable of this name: docs/provisioning.md".to_owned())
            }
            Self::Worker { .. } => None,
        }
    }
}
