//! The result of one attempt.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{AttemptOutcome, AttemptPurpose, MetricKey, Validity};

/// The result of one attempt at a sample or warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptResult {
    /// The number of the sample among the samples of the cell, or of the warm-up among its warm-ups, from 0.
    pub sample: u32,
    /// The number of the attempt at this sample or warm-up, from 0.
    pub attempt: u32,
    /// Whether it is a sample or a warm-up.
    pub purpose: AttemptPurpose,
    /// Elapsed time in seconds from the start of the run's first invocation to the start of this attempt, including the
    /// time between invocations.
    pub start_seconds: f64,
    /// Its duration in seconds.
    pub seconds: f64,
    /// The duration of its measured part in seconds; that of its processes if the test cannot separate it from
    /// preparation.
    pub measured_seconds: f64,
    /// How it ended: completed, failed, timed out, …
    pub outcome: AttemptOutcome,
    /// Whether its values passed the plausibility checks; absent if it did not complete.
    pub validity: Option<Validity>,
    /// Activity outside the workload that disturbed it (stolen CPU time, CPU time and I/O of other processes), each a
    /// sentence with the measured values.
    pub disturbances: Vec<String>,
    /// Whether its values are in the cell's result: it is a valid sample, and the sampling rule uses it.
    pub counted: bool,
    /// Its values, by `CLASS/METRIC` or `CLASS/METRIC@WORKER` (`throughput/read`, `latency/p99@vm2`).
    pub values: BTreeMap<MetricKey, f64>,
    /// The folder of its artefacts, relative to the run folder.
    pub folder: String,
}
