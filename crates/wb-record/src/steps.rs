//! Auxiliary steps of a run: host provisioning, setup scripts, reboots, and publication of results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::secrets::mask_secret_words;
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
    /// Creates the outcome of a result, and masks secrets in the error: it may contain the output of a program.
    pub fn from_result<T>(result: &Result<T, impl ToString>) -> Self {
        match result {
            Ok(_) => Self::Done,
            Err(error) => Self::Failed { reason: mask_secret_words(&error.to_string()) },
        }
    }

    /// Whether it succeeded.
    pub fn is_done(&self) -> bool {
        *self == Self::Done
    }
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
