//! What was done around measuring: hosts provisioned, scripts run, machines rebooted, results published.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::secrets::mask_words;
use wb_model::{Sha256, WorkerName};

/// How such a step came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum StepOutcome {
    /// As it should.
    Done,
    /// Not, because of this.
    Failed {
        /// Why.
        reason: String,
    },
}

impl StepOutcome {
    /// Of a result.
    pub fn of<T>(result: &Result<T, impl ToString>) -> Self {
        match result {
            Ok(_) => Self::Done,
            // It may have the last words of a program.
            Err(why) => Self::Failed { reason: mask_words(&why.to_string()) },
        }
    }

    /// Whether it came out as it should.
    pub fn is_done(&self) -> bool {
        *self == Self::Done
    }
}

/// A host was provisioned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProvisioningStep {
    /// Which host.
    pub host: WorkerName,
    /// By which provisioner.
    pub provisioner: String,
    /// The hash of what it was given.
    pub sha256: Sha256,
    /// How it came out.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What was said meanwhile: a file of the run folder.
    pub log: String,
}

/// What a script is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptKind {
    /// It sets a host up, before any profile is applied.
    HostSetup,
    /// It sets a worker up, before the first test there.
    WorkerSetup,
}

impl ScriptKind {
    /// Its name, as options and files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostSetup => "host-setup",
            Self::WorkerSetup => "worker-setup",
        }
    }
}

/// A script ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptStep {
    /// What for.
    pub script: ScriptKind,
    /// Where.
    pub worker: WorkerName,
    /// The hash of its text and its arguments.
    pub sha256: Sha256,
    /// The boot that it ran in.
    pub boot_id: String,
    /// How it came out.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What it said: a file of the run folder.
    pub log: String,
}

/// A reboot that was asked for came to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RebootStep {
    /// Which machine.
    pub worker: WorkerName,
    /// The boot that was to end.
    pub boot_id: String,
    /// The boot that it came back in, if it did.
    pub next_boot_id: Option<String>,
    /// How it came out.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// The publish command ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishStep {
    /// For which test: `PROFILE/TEST/SERIAL`; none at the end, for the whole run.
    pub test: Option<String>,
    /// How it came out.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What it said: a file of the run folder.
    pub log: String,
}
