//! The data of a study: the contents of every `result.json`, and the input of reports.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use wb_model::Purpose;
use wb_model::{
    AttemptOutcome, CellId, CellOutcome, DefinitionKey, Metric, MetricKey, Params, System, Unit, Validity, WorkerName,
    with_worker,
};
use wb_stats::{SamplingRule, Summary};
pub use wb_tests::Conclusion;

/// The evaluation of a whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// The run: what was measured, where and when.
    pub run: RunInfo,
    /// The results of its cells, in plan order.
    pub cells: Vec<CellResult>,
    /// Conclusions from several cells together.
    pub conclusions: Vec<Conclusion>,
    /// Changes of the environment during the run.
    pub environment_changes: Vec<EnvironmentChange>,
}

/// The run: what was measured, where and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// The run folder's name.
    pub name: String,
    /// The plan's name, or the tests as given on the command line.
    pub plan: String,
    /// Start time of the first entry, for people: RFC 3339 in UTC.
    pub started: String,
    /// Total wall time of all entries, in seconds.
    pub seconds: f64,
    /// The part of that time during which processes of the workload ran, including their start, calibration and checks,
    /// in seconds.
    pub workload_seconds: f64,
    /// The part of the workload time that was measured, in seconds; all of it for tests that do not distinguish.
    pub measured_seconds: f64,
    /// The program's version.
    pub version: String,
    /// Properties of each worker, in display order: `("CPU", "…")`, `("kernel", "…")`, ….
    pub properties: Vec<(String, String)>,
    /// The host names of all machines that measured.
    #[serde(default)]
    pub machines: Vec<String>,
    /// The hardware and software of each machine that measured.
    #[serde(default)]
    pub systems: Vec<System>,
    /// The user's metadata of the run.
    pub metadata: BTreeMap<String, String>,
}

/// The result of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellResult {
    /// The cell.
    pub cell: CellId,
    /// The key that determines with which other cells it may be compared.
    pub key: DefinitionKey,
    /// The test's one-line summary.
    pub summary: String,
    /// Its effective parameters, including defaults and resolved ones.
    pub params: Params,
    /// The workers that measured it at the same time; empty if only this machine did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerName>,
    /// Its sampling rule.
    pub rule: SamplingRule,
    /// Its outcome.
    pub outcome: CellOutcome,
    /// Why it ended, in words; absent if its run has not finished it.
    pub ended_by: Option<String>,
    /// Its metrics, the primary one first.
    pub metrics: Vec<MetricResult>,
    /// Every attempt, in time order, warm-ups included.
    pub samples: Vec<SampleResult>,
    /// Curves measured inside samples, such as bandwidth over block size.
    pub curves: Vec<Curve>,
    /// Per-second percentiles and their spread, if latencies of operations were recorded.
    pub latency: Vec<NestedLatency>,
    /// Findings, each a sentence: drift, more than one mode, throttling, placement other than requested.
    pub findings: Vec<String>,
    /// Binaries, versions, hashes and anything else that may explain the figures.
    pub provenance: BTreeMap<String, String>,
}

impl CellResult {
    /// The primary metric, which determines convergence and verdict.
    pub fn primary(&self) -> Option<&MetricResult> {
        self.metrics.iter().find(|result| result.metric.primary)
    }
}

/// The result of a metric over the counted samples of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricResult {
    /// The metric.
    pub metric: Metric,
    /// The worker; absent for the aggregate over all workers.
    pub worker: Option<WorkerName>,
    /// The summary of the samples that count; absent if none does.
    pub summary: Option<Summary>,
    /// The summary without the disturbed samples, if some are disturbed.
    pub undisturbed: Option<Summary>,
}

impl MetricResult {
    /// The key of its values in samples.
    pub fn key(&self) -> MetricKey {
        MetricKey { worker: self.worker.clone(), ..self.metric.key() }
    }
}

/// The result of one attempt at a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleResult {
    /// The sample's number within its cell; warm-ups and samples are both numbered from 0.
    pub sample: u32,
    /// The number of the attempt at it, from 0.
    pub attempt: u32,
    /// Its purpose.
    pub purpose: Purpose,
    /// Seconds from the run's first start to the start of this attempt, over all entries.
    pub start_seconds: f64,
    /// Its duration in seconds.
    pub seconds: f64,
    /// The duration of its measured part in seconds; that of its processes if the test does not distinguish.
    pub measured_seconds: f64,
    /// Its outcome.
    pub outcome: AttemptOutcome,
    /// Whether its values are valid; absent if it did not complete.
    pub validity: Option<Validity>,
    /// Disturbances from outside, with figures.
    pub disturbances: Vec<String>,
    /// Whether its values count for the cell's result.
    pub counted: bool,
    /// Its values, by `CLASS/METRIC` or `CLASS/METRIC@WORKER`.
    pub values: BTreeMap<MetricKey, f64>,
    /// Its folder, relative to the run folder.
    pub folder: String,
}

/// A curve measured inside the samples of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// The title.
    pub title: String,
    /// The quantity of the x axis and its unit (`B` makes a logarithmic axis in powers of two).
    pub x: (String, Unit),
    /// The measured quantity and its unit.
    pub y: (String, Unit),
    /// The lines of the curve.
    pub lines: Vec<CurveLine>,
}

/// One line of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveLine {
    /// Its name in the legend.
    pub name: String,
    /// Its points, by ascending x.
    pub points: Vec<LinePoint>,
}

/// One point of a line: the median over samples, with its interval if there are enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinePoint {
    /// The value on the x axis.
    pub x: f64,
    /// The median.
    pub y: f64,
    /// The interval's ends.
    pub interval: Option<(f64, f64)>,
    /// The range of the middle 80 % of the samples; absent for a single sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<(f64, f64)>,
}

/// The nested latency table: percentiles per second and their percentiles over the seconds, with the cumulative
/// percentiles. It distinguishes a device that stalls in bursts from one with a long tail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NestedLatency {
    /// The kind of operations: `read completion`.
    pub title: String,
    /// The percentiles over seconds, one per column: 0 (smallest) to 100 (largest).
    pub over_seconds: Vec<f64>,
    /// One row per latency percentile.
    pub rows: Vec<NestedRow>,
}

/// One row of the nested latency table; values in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NestedRow {
    /// The latency percentile.
    pub percentile: f64,
    /// The percentile over all operations of all seconds.
    pub cumulative: f64,
    /// The percentiles over seconds, one per column.
    pub per_second: Vec<f64>,
}

/// A change of the environment during or between entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentChange {
    /// The worker; absent for the first or only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The path of the setting: `sysctl/vm.swappiness`.
    pub path: String,
    /// The value before; absent if there was none.
    pub before: Option<String>,
    /// The value after; absent if there is none.
    pub after: Option<String>,
}

impl EnvironmentChange {
    /// The path with the worker: `sysctl/vm.swappiness@vm2`.
    pub fn path_with_worker(&self) -> String {
        with_worker(&self.path, self.worker.as_ref())
    }
}
