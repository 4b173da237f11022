//! Auxiliary steps of a run: provisioning of hosts, scripts, reboots, publishing of results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::secrets::mask_words;
use wb_model::{Sha256, WorkerName};

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum StepOutcome {
    /// It succeeded.
    Done,
    /// It failed.
    Failed {
        /// The reason.
        reason: String,
    },
}

impl StepOutcome {
    /// The outcome of a result.
    pub fn of<T>(result: &Result<T, impl ToString>) -> Self {
        match result {
            Ok(_) => Self::Done,
            // The error may contain the output of a program.
            Err(error) => Self::Failed { reason: mask_words(&error.to_string()) },
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
    /// The host.
    pub host: WorkerName,
    /// The provisioner.
    pub provisioner: String,
    /// The hash of its input.
    pub sha256: Sha256,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// The duration in seconds.
    pub seconds: f64,
    /// Its output: a file of the run folder.
    pub log: String,
}

/// The kind of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptKind {
    /// It sets a host up, before any profile is applied.
    HostSetup,
    /// It sets a worker up, before the first test there.
    WorkerSetup,
}

impl ScriptKind {
    /// Its name in options and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostSetup => "host-setup",
            Self::WorkerSetup => "worker-setup",
        }
    }
}

/// The run of a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptStep {
    /// The kind of the script.
    pub script: ScriptKind,
    /// The worker.
    pub worker: WorkerName,
    /// The hash of the script's text and its arguments.
    pub sha256: Sha256,
    /// The ID of the boot in which it ran.
    pub boot_id: String,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// The duration in seconds.
    pub seconds: f64,
    /// Its output: a file of the run folder.
    pub log: String,
}

/// The end of a requested reboot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RebootStep {
    /// The worker.
    pub worker: WorkerName,
    /// The ID of the boot before.
    pub boot_id: String,
    /// The ID of the boot after, if the machine came back.
    pub next_boot_id: Option<String>,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// The duration in seconds.
    pub seconds: f64,
}

/// The run of the publish command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishStep {
    /// The test: `PROFILE/TEST/SERIAL`; absent at the end, for the whole run.
    pub test: Option<String>,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// The duration in seconds.
    pub seconds: f64,
    /// Its output: a file of the run folder.
    pub log: String,
}
