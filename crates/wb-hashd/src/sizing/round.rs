//! A round of sizing: the parameters that are run, and what was observed with them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};
use wb_sys::telemetry::DisturbanceMark;

use super::SizingConfig;
use crate::HashdParams;
use crate::size::format_size;

/// Standard deviation with which addresses are practically uniform.
const UNIFORM: f64 = 100.0;

/// What a round is for
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// How much one CPU hashes in 15 ms
    HashSize,
    /// The rate at which the latency reaches its target
    RpsMax,
    /// A larger footprint, until the rate falls
    MemoryUp,
    /// A footprint between one that is sustained and one that is not
    MemoryBisect,
    /// The opposite bound once more, since memory reacts late
    MemoryVerify,
    /// A slightly smaller footprint, until the rate is full
    MemoryRefine,
}

/// What is run in a round
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RoundPlan {
    /// What it is for
    pub stage: Stage,
    /// Mean size of what a request reads from files
    pub hash_size: Bytes,
    /// Pages that are read or touched together
    pub chunk_pages: u32,
    /// Requests per second at full load, once known
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rps_max: Option<f64>,
    /// Part of the memory footprint that is used
    pub mem_frac: f64,
}

impl RoundPlan {
    pub fn params(&self, config: &SizingConfig) -> HashdParams {
        let params = HashdParams {
            file_size_mean: self.hash_size,
            chunk_pages: self.chunk_pages,
            rps_max: self.rps_max,
            rps_target: self.rps_max,
            mem_frac: self.mem_frac,
            ..config.params.clone()
        };
        match self.stage {
            Stage::HashSize => HashdParams {
                concurrency_max: 1,
                file_size_stdev: 0.0,
                file_addr_stdev: UNIFORM,
                anon_size_stdev: 0.0,
                anon_addr_stdev: UNIFORM,
                sleep_mean: Nanos(0),
                ..params
            },
            Stage::RpsMax => HashdParams { file_addr_stdev: UNIFORM, anon_addr_stdev: UNIFORM, ..params },
            Stage::MemoryUp | Stage::MemoryBisect | Stage::MemoryVerify | Stage::MemoryRefine => params,
        }
    }
}

/// How a round ended
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum RoundOutcome {
    /// Its rate and latency were measured
    Measured {
        /// Requests per second
        rps: f64,
        /// The controlled quantile of the latency, in seconds
        latency: f64,
        /// Whether they had stopped to change when the window ended
        is_converged: bool,
    },
    /// It was not run: anonymous memory would not have fitted
    DoesNotFit {
        /// Anonymous memory of this footprint, in bytes
        required: u64,
        /// What was available, swap included, in bytes
        available: u64,
    },
    /// The workload was killed, as the kernel does when memory runs out
    Killed {},
}

/// A finished round
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Round {
    /// What was run
    pub plan: RoundPlan,
    /// How it ended
    pub outcome: RoundOutcome,
    /// How long it took, in seconds
    pub seconds: f64,
    /// What else was active on the machine; such a round is repeated
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbance: Vec<DisturbanceMark>,
}

/// The answer
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SizingResult {
    /// Parameters with which hashd loads the machine fully
    pub params: HashdParams,
    /// Footprint at a `mem-frac` of 1, for which they hold (`--memory`), in bytes
    pub memory: u64,
    /// Footprint that is used: `memory` times `mem-frac`, in bytes
    pub footprint: u64,
    /// Whether even the whole footprint was sustained, so that the machine could have more
    pub is_limited_by_memory: bool,
    /// Values that were used although their rounds did not reach what was required
    pub unconverged: Vec<Stage>,
    /// Rounds
    pub rounds: u32,
    /// Rounds that were disturbed and repeated
    pub repeated: u32,
    /// Rounds that were disturbed and count nevertheless, because there had been enough repeats
    pub disturbed: u32,
    /// Time of all rounds, in seconds
    pub seconds: f64,
}

impl SizingResult {
    /// The parameters as a TOML file for `--params`, with the rest of the result as a comment.
    pub fn params_file(&self) -> Result<String, SizingError> {
        let Self { rounds, memory, .. } = self;
        let params = toml::to_string(&self.params)?;
        Ok(format!(
            "# Found by `weighbridge hashd --find-params` in {rounds} rounds, for `--memory {memory}`.\n{params}"
        ))
    }
}

/// The configuration of a sizing, with the rounds that are finished already
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SizingRequest {
    /// What is sized; to resume, the configuration that was printed
    pub config: SizingConfig,
    /// Finished rounds, in their order, as they were printed
    pub rounds: Vec<Round>,
}

/// A line of the journal and of the output
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizingLine {
    /// The configuration, as it was resolved on this machine
    Config(Box<SizingConfig>),
    /// A finished round
    Round(Box<Round>),
    /// The answer
    Result(Box<SizingResult>),
}

/// Why no parameters could be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SizingError {
    #[error(
        "round {number} does not belong to this configuration: expected the stage {expected:?} at a footprint of {fraction:.3}"
    )]
    RoundMismatch {
        /// From 1.
        number: usize,
        expected: Stage,
        /// `mem-frac`.
        fraction: f64,
    },
    /// Memory does not even suffice to measure the CPU.
    #[error("cannot measure the CPU: a footprint of {} was not sustained", format_size(*footprint))]
    NoMemory {
        /// Bytes.
        footprint: u64,
    },
    #[error("no footprint is sustained at {rps} requests per second, not even {}", format_size(*footprint))]
    NothingSustained {
        rps: f64,
        /// The smallest that was tried, in bytes.
        footprint: u64,
    },
    #[error("cannot write the parameters: {0}")]
    Format(#[from] toml::ser::Error),
    #[error(transparent)]
    Workload(#[from] crate::HashdError),
    #[error("the workload has ended: {message}")]
    Ended {
        /// What it printed, or its exit status.
        message: String,
    },
    #[error("cancelled")]
    Cancelled,
}
