//! Events of a sequence, which the journal keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_results::contention::{Instance, SystemInfo};

use crate::conditions::Conditions;
use crate::measurement::Measurement;
use crate::merge::MergeReport;
use crate::runner::{Checkpoint, StageFailure};
use crate::spec::BenchSpec;
use crate::stage::{Stage, StageDefinition, StageKey};

/// An event of a sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "sequence", rename_all = "kebab-case")]
pub enum SequenceEvent {
    /// A sequence started.
    SequenceStarted {
        /// Its benches, as requested.
        specs: Vec<BenchSpec>,
        /// Seed of its random choices.
        seed: u64,
    },
    /// An attempt at a stage started.
    StageStarted(Box<StartedStage>),
    /// A stage reached a point that need not be repeated.
    CheckpointReached {
        /// The stage.
        stage: StageKey,
        /// The progress.
        checkpoint: Checkpoint,
    },
    /// A stage is executed although requirements are not met.
    RequirementsMissed {
        /// The stage.
        stage: StageKey,
        /// Their names.
        requirements: Vec<String>,
    },
    /// A stage has a result.
    StageEnded {
        /// The stage.
        stage: StageKey,
        /// Its result.
        measurement: Box<Measurement>,
    },
    /// An attempt at a stage failed.
    StageFailed {
        /// The stage.
        stage: StageKey,
        /// Why.
        failure: StageFailure,
        /// Whether the stage has no result for good: it is not executed again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        given_up: bool,
    },
    /// All stages of a bench are done.
    BenchEnded(Box<EndedBench>),
    /// A result was merged from those of other runs.
    Merged(Box<MergeReport>),
    /// A sequence ended.
    SequenceEnded {
        /// How.
        end: SequenceEnd,
    },
}

/// The start of an attempt at a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedStage {
    /// The stage.
    pub stage: StageKey,
    /// The number of the attempt, from 0.
    pub attempt: u32,
    /// The attempt in whose folder the reports lie: that of the checkpoint from which it goes on, or its own.
    pub reports: u32,
    /// The instance that it belongs to.
    pub instance: Instance,
    /// What it measures.
    pub definition: StageDefinition,
    /// Under which conditions.
    pub conditions: Conditions,
}

/// The end of a bench.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndedBench {
    /// The instance.
    pub instance: Instance,
    /// Its specification.
    pub spec: BenchSpec,
    /// The machine.
    pub system: SystemInfo,
    /// The stages that its result is derived from.
    pub stages: Vec<StageKey>,
    /// Random shift of the vrates of `iocost-qos`, in percent.
    #[serde(default)]
    pub shift: f64,
    /// Whether it was merged from results of other runs, rather than measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_merged: bool,
}

/// How a sequence ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SequenceEnd {
    /// All its benches have a result.
    Finished,
    /// The user interrupted it.
    Interrupted,
    /// A stage failed.
    Failed,
}

impl StartedStage {
    pub fn to_stage(&self) -> Stage {
        Stage {
            instance: self.instance.clone(),
            definition: self.definition.clone(),
            conditions: self.conditions.clone(),
        }
    }
}
