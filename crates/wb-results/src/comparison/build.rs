//! The builds of a comparison and their runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::System;

use super::Environments;

/// The summary of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildSummary {
    /// Its name.
    pub name: String,
    /// Its runs.
    pub runs: Vec<RunSummary>,
    /// Tests and cells that ended in an error: `PROFILE/TEST/SERIAL`, with `:CASE` in a Weighbridge run, and the
    /// message.
    pub errors: Vec<(String, String)>,
    /// The number of counted samples of its runs; `None` if their results do not record disturbances.
    pub samples: Option<SampleCounts>,
}

/// The summary of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Its folder.
    pub path: String,
    /// The recorded metadata by name: the measured build, its URL, the machine, distributions, version, command and
    /// other entries.
    pub metadata: BTreeMap<String, String>,
    /// The environments of the machines when the samples were taken.
    pub environment: Environments,
    /// The hardware and software of each machine.
    #[serde(default)]
    pub systems: Vec<System>,
}

/// The number of counted samples, and how many of them were disturbed from outside the workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampleCounts {
    /// The number of counted samples.
    pub counted: usize,
    /// The number of disturbed samples among them.
    pub disturbed: usize,
}

impl std::ops::Add for SampleCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { counted: self.counted + other.counted, disturbed: self.disturbed + other.disturbed }
    }
}
