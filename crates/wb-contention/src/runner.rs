//! How stages are executed: the contract between a sequence and what measures.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_record::RecordError;
use wb_results::contention::Bench;

use crate::measurement::Measurement;
use crate::report::{PerSecondReport, ReportFolder};
use crate::stage::Stage;

/// Executes stages. It sets up the machine as the stage requires, through the undo log, and reverts it before it
/// returns, whatever happens. It writes a report each second, and a checkpoint whenever something is complete that need
/// not be repeated.
#[async_trait(?Send)]
pub trait StageRunner {
    /// Executes a stage from its beginning, or from the last checkpoint of an earlier attempt.
    async fn run(&mut self, stage: &Stage, context: &mut StageContext<'_>) -> Result<Measurement, StageError>;
}

/// Where runners come from.
pub trait Runners {
    /// The runner of a kind of work: `iocost-params`, `hashd-params`, `storage` or `protection`, of which the other
    /// benches consist. `None` if this program cannot run it.
    fn runner_for(&mut self, bench: Bench) -> Option<Box<dyn StageRunner>>;
}

/// Progress of a stage that an interrupted attempt leaves to the next one. Only its runner interprets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Checkpoint(pub serde_json::Value);

pub struct StageContext<'a> {
    pub(crate) resume_from: Option<Checkpoint>,
    pub(crate) reports: ReportFolder,
    pub(crate) record: &'a mut dyn FnMut(StageNote) -> Result<(), RecordError>,
}

pub(crate) enum StageNote {
    Checkpoint(Checkpoint),
    MissedRequirements(Vec<String>),
}

impl StageContext<'_> {
    /// The last checkpoint of earlier attempts under the same conditions.
    pub fn resume_from(&self) -> Option<&Checkpoint> {
        self.resume_from.as_ref()
    }

    /// Records a checkpoint, durably.
    pub fn checkpoint(&mut self, checkpoint: Checkpoint) -> Result<(), StageError> {
        Ok((self.record)(StageNote::Checkpoint(checkpoint))?)
    }

    /// Records the names of requirements that are not met, if the stage is executed nevertheless (`--force`).
    pub fn record_unmet_requirements(&mut self, requirements: Vec<String>) -> Result<(), StageError> {
        Ok((self.record)(StageNote::MissedRequirements(requirements))?)
    }

    pub fn report(&self, report: &PerSecondReport) -> Result<(), StageError> {
        Ok(self.reports.write(report)?)
    }

    /// Includes reports of earlier attempts.
    pub fn reports(&self) -> &ReportFolder {
        &self.reports
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StageError {
    #[error(transparent)]
    Failed(#[from] StageFailure),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A failure of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "failure", rename_all = "kebab-case")]
pub enum StageFailure {
    /// The file system is full.
    #[error("no space left in {path}: free some space")]
    NoSpace {
        /// The folder.
        path: String,
    },
    /// The kernel's OOM killer, or oomd, ended a process.
    #[error("`{process}` was killed because memory ran out")]
    OutOfMemory {
        /// The process.
        process: String,
    },
    /// Another program has configured io.cost.
    #[error(
        "another program has set io.cost of {device}: stop it, or start from its parameters with --iocost-from-sys"
    )]
    IocostInUse {
        /// The device.
        device: String,
    },
    /// Another controller of I/O is active.
    #[error("another controller of I/O is active: {controller}; disable it, or measure with --force")]
    IoControllerInUse {
        /// Its name: `io.latency`, `blk-throttle`.
        controller: String,
    },
    /// The machine has cgroup v1 only.
    #[error("cgroup v2 is required, but only v1 is mounted: boot with systemd.unified_cgroup_hierarchy=1")]
    CgroupV1,
    /// Requirements are not met.
    #[error("requirements are not met: {}; see docs/contention.md, or measure with --force", requirements.join(", "))]
    Requirements {
        /// Their names.
        requirements: Vec<String>,
    },
    /// The machine was suspended.
    #[error("the machine was suspended for {seconds} s")]
    Suspended {
        /// For how long.
        seconds: u64,
    },
    /// The memory hog competed with nobody.
    #[error("{reason}")]
    NoContention {
        /// What happened.
        reason: String,
    },
    /// The workload behaved in a way that gives no result.
    #[error("{reason}")]
    Workload {
        /// What happened.
        reason: String,
    },
    /// Something else failed on the machine: an agent that is lost, a setting that cannot be changed.
    #[error("{reason}")]
    Machine {
        /// What happened.
        reason: String,
    },
    /// The user interrupted it.
    #[error("interrupted")]
    Cancelled,
}

impl StageFailure {
    /// Whether another attempt may succeed without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. } | Self::Suspended { .. } | Self::Workload { .. })
    }

    /// Whether the workload failed under this stage's settings, which says something about them, rather than the
    /// machine or the user.
    pub fn concerns_settings(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. } | Self::Workload { .. })
    }
}
