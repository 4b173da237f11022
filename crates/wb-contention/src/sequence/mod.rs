//! Sequences: the order of benches, their existing results, and what each stage measures.

mod plan;
mod schedule;
mod stages;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_results::contention::{Bench, Instance};

use crate::spec::BenchSpec;

pub use crate::benches::iocost_qos::stages::Throttle;
pub use plan::{PlannedJob, PlannedStage, StageAction, plan};
pub(crate) use plan::{given_parameters, planned_job};
pub use schedule::{ScheduleError, schedule};
pub(crate) use stages::{JobContext, JobStages};

/// A bench of a sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub instance: Instance,
    pub spec: BenchSpec,
    pub origin: Origin,
}

/// Why a bench is in a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The user requested it.
    Requested,
    /// This bench needs its answer.
    RequiredBy(Bench),
}
