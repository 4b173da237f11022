//! What a study yields: the contents of every `result.json`, and all that a report draws.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use wb_model::Purpose;
use wb_model::{
    AttemptOutcome, CellId, CellOutcome, DefinitionKey, Metric, Params, System, Unit, Validity, WorkerName,
};
use wb_stats::{SamplingRule, Summary};
pub use wb_tests::Conclusion;

/// A whole run, studied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// What was run, where and when.
    pub run: RunInfo,
    /// Its cells, in plan order.
    pub cells: Vec<CellResult>,
    /// What follows from several cells together.
    pub conclusions: Vec<Conclusion>,
    /// What the environment did meanwhile.
    pub environment_changes: Vec<EnvironmentChange>,
}

/// What was run, where and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// The run folder's name.
    pub name: String,
    /// The plan's name, or the tests as they were typed.
    pub plan: String,
    /// When the first entry began, for people: RFC 3339 in UTC.
    pub started: String,
    /// Wall time of all entries together, in seconds.
    pub seconds: f64,
    /// Of that, how long processes of the workload ran, their start, calibration and checks included, in seconds.
    pub workload_seconds: f64,
    /// Of that, the measured parts; all of it for tests that do not tell them apart.
    pub measured_seconds: f64,
    /// The program's version.
    pub version: String,
    /// What describes each worker, in the order to show: `("CPU", "…")`, `("kernel", "…")`, ….
    pub properties: Vec<(String, String)>,
    /// The names of all machines that measured.
    #[serde(default)]
    pub machines: Vec<String>,
    /// The hardware and software of each machine that measured.
    #[serde(default)]
    pub systems: Vec<System>,
    /// What the user said of the run.
    pub metadata: BTreeMap<String, String>,
}

/// A cell, studied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellResult {
    /// Which cell.
    pub cell: CellId,
    /// What decides with which others it may be compared.
    pub key: DefinitionKey,
    /// What the test says of itself, in a line.
    pub summary: String,
    /// Its effective parameters, defaults and resolved ones included.
    pub params: Params,
    /// The workers that measured it at the same time; none where it was this machine alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerName>,
    /// The sampling rule it was under.
    pub rule: SamplingRule,
    /// What is known of it.
    pub outcome: CellOutcome,
    /// What ended it, in words; none where its run is not done with it.
    pub ended_by: Option<String>,
    /// Its metrics, the primary one first.
    pub metrics: Vec<MetricResult>,
    /// Every attempt, in time order, warm-ups included.
    pub samples: Vec<SampleResult>,
    /// Curves measured inside samples, such as bandwidth over block size.
    pub curves: Vec<Curve>,
    /// Per-second percentiles and their spread, where per-operation latency was recorded.
    pub latency: Vec<NestedLatency>,
    /// What was noticed, each in a sentence: drift, bimodality, throttling, placement not as asked.
    pub findings: Vec<String>,
    /// Binaries, versions, hashes and whatever else may explain the figures.
    pub provenance: BTreeMap<String, String>,
}

impl CellResult {
    /// The metric that convergence and verdict rest on.
    pub fn primary(&self) -> Option<&MetricResult> {
        self.metrics.iter().find(|result| result.metric.primary)
    }
}

/// A metric of a cell over its counted samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricResult {
    /// The metric.
    pub metric: Metric,
    /// The worker; none for the aggregate over all.
    pub worker: Option<WorkerName>,
    /// Over the samples that count; none where there are none.
    pub summary: Option<Summary>,
    /// The same with the disturbed samples left out, where some are disturbed.
    pub undisturbed: Option<Summary>,
}

/// One attempt at a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleResult {
    /// The sample's number within its cell, warm-ups and counted ones each from 0.
    pub sample: u32,
    /// Which attempt at it, from 0.
    pub attempt: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// Seconds from the run's first start to this attempt's, along all entries.
    pub start_seconds: f64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// How long its measured part took, in seconds; its processes, where the test does not tell them apart.
    pub measured_seconds: f64,
    /// What happened.
    pub outcome: AttemptOutcome,
    /// Whether its values count; none where it did not complete.
    pub validity: Option<Validity>,
    /// What disturbed it from outside, with figures; empty where nothing did.
    pub disturbances: Vec<String>,
    /// Whether its values are among the cell's counted ones.
    pub counted: bool,
    /// Its values, by `CLASS/METRIC` or `CLASS/METRIC@WORKER`.
    pub values: BTreeMap<String, f64>,
    /// Its folder, relative to the run's.
    pub folder: String,
}

/// A curve measured inside the samples of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// What it shows.
    pub title: String,
    /// What runs along it, and its unit (`B` makes a logarithmic axis in powers of two).
    pub x: (String, Unit),
    /// What was measured, and its unit.
    pub y: (String, Unit),
    /// The lines in it.
    pub lines: Vec<CurveLine>,
}

/// One line of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveLine {
    /// Its name in the legend.
    pub name: String,
    /// Its points, x ascending.
    pub points: Vec<LinePoint>,
}

/// One point of a line: the median over samples, with its interval where there are enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinePoint {
    /// Along.
    pub x: f64,
    /// The median.
    pub y: f64,
    /// The interval's ends.
    pub interval: Option<(f64, f64)>,
    /// Between which values the middle 80 % of the samples lie; none of a single sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<(f64, f64)>,
}

/// The nested latency table: percentiles per second, and how those are spread over the seconds, beside the
/// cumulative ones. It tells a device that stalls in bursts from one with a long tail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NestedLatency {
    /// Of which operations: `read completion`.
    pub title: String,
    /// The percentiles of the columns, over seconds: 0 (least) to 100 (largest).
    pub over_seconds: Vec<f64>,
    /// One row per latency percentile.
    pub rows: Vec<NestedRow>,
}

/// One row of the nested latency table; values in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NestedRow {
    /// The latency percentile.
    pub percentile: f64,
    /// Over all operations of all seconds.
    pub cumulative: f64,
    /// The percentiles over seconds, as the table's columns.
    pub per_second: Vec<f64>,
}

/// One thing of the environment that is not as it was at the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentChange {
    /// The worker; none where it is the first, or the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// What: `sysctl/vm.swappiness`.
    pub path: String,
    /// Before; none where it was not there.
    pub before: Option<String>,
    /// After; none where it is gone.
    pub after: Option<String>,
}

impl EnvironmentChange {
    /// What changed, and on which worker: `sysctl/vm.swappiness@vm2`.
    pub fn path_with_worker(&self) -> String {
        let worker = self.worker.as_ref().map(|worker| format!("@{worker}"));
        format!("{}{}", self.path, worker.unwrap_or_default())
    }
}
