//! The numbers of samples and runs that a comparison has, and requires.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The numbers of samples and runs of both sides: first the reference, then the judged build.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservationCounts {
    /// The numbers of samples.
    pub samples: [usize; 2],
    /// The numbers of runs with samples.
    pub runs: [usize; 2],
    /// Whether the samples of both sides form pairs: those of the same rounds of one run.
    #[serde(default)]
    pub paired: bool,
}

impl ObservationCounts {
    /// The number of samples of the smaller side.
    pub fn min_samples(&self) -> usize {
        self.samples[0].min(self.samples[1])
    }

    pub fn has_several_runs(&self) -> bool {
        self.runs.iter().all(|runs| *runs > 1)
    }
}

/// Number of samples or runs required per side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequiredSamples {
    /// Total number per side; `None` if no practical number is enough.
    pub per_side: Option<usize>,
    /// Whether samples or runs are counted.
    pub unit: ObservationKind,
    /// Whether this is the minimum for any verdict.
    pub is_minimum: bool,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObservationKind {
    /// Samples.
    Samples,
    /// Runs, each prepared anew.
    Runs,
}

impl fmt::Display for ObservationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Samples => "samples",
            Self::Runs => "runs",
        })
    }
}
