//! Auxiliary steps of a run: host provisioning, setup scripts, reboots, and publication of results.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::secrets::mask_url_credentials;
use wb_model::{Sha256, WorkerName};

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum StepOutcome {
    /// It succeeded.
    Done,
    /// It failed.
    Failed {
        /// The error message, with secrets masked.
        reason: String,
    },
}

impl StepOutcome {
    /// Creates the outcome of a result, and masks declared secrets and passwords in URLs in the error: it may contain the
    /// output of a program.
    pub fn from_result<T>(result: &Result<T, impl ToString>) -> Self {
        match result {
            Ok(_) => Self::Done,
            Err(error) => Self::Failed { reason: mask_url_credentials(&error.to_string()) },
        }
    }

    /// Whether it succeeded.
    pub fn is_done(&self) -> bool {
        *self == Self::Done
    }
}

/// A kind of step that prepares machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreparationKind {
    /// Connecting to hosts.
    Connecting,
    /// Provisioning hosts.
    Provisioning,
    /// Running the host setup script.
    HostSetup,
    /// Applying a profile to hosts.
    Profile,
    /// Applying a profile to hosts, with guests that it starts.
    Guests,
    /// Running the worker setup script.
    WorkerSetup,
}

/// The start of a step that prepares machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PreparationStart {
    /// The step.
    pub step: PreparationKind,
    /// The machines that it prepares.
    pub machines: Vec<WorkerName>,
    /// The name of the provisioner, script or profile; absent for connecting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl fmt::Display for PreparationStart {
    /// Describes the step: `starting guests of DefaultLibvirt on a, b`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or_default();
        let machines = self.machines.iter().map(|machine| format!("`{machine}`")).collect::<Vec<_>>().join(", ");
        match self.step {
            PreparationKind::Connecting => write!(f, "connecting to {machines}"),
            PreparationKind::Provisioning => write!(f, "provisioning {machines} by `{name}`"),
            PreparationKind::HostSetup => write!(f, "running the host setup script {name} on {machines}"),
            PreparationKind::Profile => write!(f, "applying the profile `{name}` to {machines}"),
            PreparationKind::Guests => write!(f, "starting guests of the profile `{name}` on {machines}"),
            PreparationKind::WorkerSetup => write!(f, "running the worker setup script {name} on {machines}"),
        }
    }
}

/// The end of a step that prepares machines, on one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PreparationEnd {
    /// The step.
    pub step: PreparationKind,
    /// The machine: a host, or a guest that started.
    pub machine: WorkerName,
    /// How the step ended there.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// The duration in seconds.
    pub seconds: f64,
}

/// The provisioning of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProvisioningStep {
    /// The host that was provisioned.
    pub host: WorkerName,
    /// The provisioner's name: `command`, `ansible`, or the name of an external program.
    pub provisioner: String,
    /// The hash of the provisioner's name and parameters, and of the playbook if it is `ansible`: a host is provisioned
    /// again when it changes.
    pub sha256: Sha256,
    /// How the step ended.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// The duration in seconds.
    pub seconds: f64,
    /// The file with its output, relative to the run folder.
    pub log: String,
}

/// When and where a setup script runs. A host is a machine that can be reached; a worker is a host or guest that
/// measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptKind {
    /// On each host, before any profile is applied.
    HostSetup,
    /// On each worker, before its first test.
    WorkerSetup,
}

impl ScriptKind {
    /// The name in command-line options and in the names of log files.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostSetup => "host-setup",
            Self::WorkerSetup => "worker-setup",
        }
    }
}

/// The execution of a setup script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptStep {
    /// Which of the setup scripts it was.
    pub script: ScriptKind,
    /// The host or worker on which it ran.
    pub worker: WorkerName,
    /// The hash of the script's text and arguments: a script runs again when it changes.
    pub sha256: Sha256,
    /// The ID of the boot in which it ran.
    pub boot_id: String,
    /// How the step ended.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// The duration in seconds.
    pub seconds: f64,
    /// The file with its output, relative to the run folder.
    pub log: String,
}

/// A requested reboot of a host, recorded at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RebootStep {
    /// The host that rebooted.
    pub worker: WorkerName,
    /// The ID of the previous boot.
    pub boot_id: String,
    /// The ID of the new boot; absent if the machine did not come back.
    pub next_boot_id: Option<String>,
    /// How the step ended.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// The duration in seconds.
    pub seconds: f64,
}

/// The execution of the publish command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishStep {
    /// The path of the published results, `PROFILE/TEST/SERIAL`; absent if the whole run was published, at its end.
    pub test: Option<String>,
    /// How the step ended.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// The duration in seconds.
    pub seconds: f64,
    /// The file with its output, relative to the run folder.
    pub log: String,
}
