//! The results of one run as evaluated from its samples: the contents of `result.json`, and the input of reports.

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
    /// What was measured, where and when.
    pub run: RunInfo,
    /// The results of its cells, in plan order.
    pub cells: Vec<CellResult>,
    /// Conclusions from several cells together, such as a scaling factor or a cache level.
    pub conclusions: Vec<Conclusion>,
    /// Changes of system settings and software during the run.
    pub environment_changes: Vec<EnvironmentChange>,
}

/// The run: what was measured, where and when. It consists of invocations of the program: the first one and those
/// that resumed or extended the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// The run folder's name.
    pub name: String,
    /// The plan's name, or the tests as given on the command line.
    pub plan: String,
    /// Start time of the first invocation, in UTC, in RFC 3339 format: for display only, since the clock may be set
    /// meanwhile.
    pub started: String,
    /// Total elapsed time of all invocations, in seconds; the time between invocations is not included.
    pub seconds: f64,
    /// The time in which machines were prepared for them, in seconds: connecting, provisioning, setup scripts, reboots,
    /// profiles and guests. It is not part of the elapsed time.
    #[serde(default)]
    pub preparation_seconds: f64,
    /// Why nothing is measured: how far the preparation of the machines came. Absent once there are cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmeasured: Option<String>,
    /// The part of that time during which processes of the workload ran, including their start, calibration and checks,
    /// in seconds.
    pub workload_seconds: f64,
    /// The part of the workload time that was measured, in seconds; all of it for tests that cannot separate
    /// measurement from preparation.
    pub measured_seconds: f64,
    /// The program's version.
    pub version: String,
    /// Properties of the machines, in display order: names and values (`("CPU", "…")`, `("kernel", "…")`) if there is
    /// one machine; otherwise one row for each set of workers with the same properties: their names, and those properties
    /// in one line.
    pub properties: Vec<(String, String)>,
    /// The host names of the machines that took part in the last invocation.
    #[serde(default)]
    pub machines: Vec<String>,
    /// The hardware and software of each machine that took part in any invocation.
    #[serde(default)]
    pub systems: Vec<System>,
    /// The user's metadata of the run.
    pub metadata: BTreeMap<String, String>,
}

/// The result of a cell: one combination of a test's parameters, measured under one profile (the state of the host).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellResult {
    /// The cell's name: `PROFILE/TEST/SERIAL:CASE`. The serial tells the tests of one name in a plan apart, and the case
    /// is the combination of its axes' values.
    pub id: CellId,
    /// The hash of what defines the cell. Cells are comparable if their keys are equal.
    pub key: DefinitionKey,
    /// The description of the test in one line.
    pub description: String,
    /// Its effective parameters, with defaults filled in and automatic values resolved.
    pub params: Params,
    /// The workers that ran it at the same time; empty if it ran on the controller's machine alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerName>,
    /// The rule that decided how many samples were taken.
    pub rule: SamplingRule,
    /// Whether it was measured: converged, with too few samples, failed, …
    pub outcome: CellOutcome,
    /// Why sampling ended, in words; absent while the cell is unfinished.
    pub ended_by: Option<String>,
    /// The results of its metrics: first over all workers, the primary metric first, then of each worker if there are
    /// several.
    pub metrics: Vec<MetricResult>,
    /// All attempts, in time order: samples and warm-ups, including failed ones.
    pub attempts: Vec<AttemptResult>,
    /// Curves measured within samples, such as bandwidth by block size.
    pub curves: Vec<CurveSet>,
    /// How latency percentiles vary over time, for each kind of operation, if latencies were recorded.
    pub latency: Vec<NestedLatency>,
    /// Observations that change no result, each a sentence: drift, more than one mode, throttling, CPU placement other
    /// than requested.
    pub findings: Vec<String>,
    /// Binaries, versions, hashes and anything else that may explain the values.
    pub provenance: BTreeMap<String, String>,
}

impl CellResult {
    /// The primary metric, which determines convergence and the verdict of comparisons: over all workers, or of the
    /// first worker if the metric is not aggregated over workers. `None` if the test has no primary metric.
    pub fn primary(&self) -> Option<&MetricResult> {
        self.metrics.iter().find(|result| result.metric.primary)
    }
}

/// The result of a metric over the counted samples of a cell ([`AttemptResult::counted`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricResult {
    /// The metric: name, class, unit and direction.
    pub metric: Metric,
    /// The worker that it was measured on; absent for the result over all workers.
    pub worker: Option<WorkerName>,
    /// Statistics of the counted samples; absent if there are none.
    pub summary: Option<Summary>,
    /// The same statistics without the disturbed samples; absent if none was disturbed.
    pub undisturbed: Option<Summary>,
}

impl MetricResult {
    /// Its key in [`AttemptResult::values`].
    pub fn key(&self) -> MetricKey {
        MetricKey { worker: self.worker.clone(), ..self.metric.key() }
    }
}

/// The result of one attempt at a sample or warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptResult {
    /// The number of the sample among the samples of the cell, or of the warm-up among its warm-ups, from 0.
    pub sample: u32,
    /// The number of the attempt at this sample or warm-up, from 0.
    pub attempt: u32,
    /// Whether it is a sample or a warm-up.
    pub purpose: Purpose,
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

/// Curves of one quantity, measured within the samples of one cell and drawn as one chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveSet {
    /// The title: `bandwidth over block size`.
    pub title: String,
    /// The quantity of the x axis and its unit. If that is `B`, the axis is logarithmic to base 2.
    pub x: (String, Unit),
    /// The measured quantity and its unit.
    pub y: (String, Unit),
    /// The lines in the chart, each with an entry in the legend.
    pub lines: Vec<SummaryCurve>,
}

/// One line of a chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryCurve {
    /// Its name in the legend.
    pub name: String,
    /// Its points, by ascending x.
    pub points: Vec<SummaryPoint>,
}

/// One point of a line: the median over the counted samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryPoint {
    /// The value on the x axis.
    pub x: f64,
    /// The median, on the y axis.
    pub y: f64,
    /// The ends of the 95 % confidence interval of the median; absent if there are too few samples.
    pub interval: Option<(f64, f64)>,
    /// The range of the middle 80 % of the samples, from p10 to p90; absent for a single sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<(f64, f64)>,
}

/// How latency percentiles vary over time. Each row takes a percentile of the operations of every second, such as the
/// p99 of each second, and has the distribution of these values over the seconds. A device that stalls in bursts has a
/// high p99 in only some of the seconds; one with a long tail has it in all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NestedLatency {
    /// The kind of operation: `read completion`.
    pub title: String,
    /// The columns: percentile ranks of the per-second values, from 0 (the smallest value) to 100 (the largest).
    pub over_seconds: Vec<f64>,
    /// The rows, one for each latency percentile.
    pub rows: Vec<NestedRow>,
}

/// One latency percentile: over the whole time, and its distribution over the seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NestedRow {
    /// Which percentile it is: 99 for p99.
    pub percentile: f64,
    /// Its value over all operations of all seconds, in nanoseconds.
    pub cumulative_ns: f64,
    /// The distribution of its values in each second, in nanoseconds: one percentile for each column.
    pub over_seconds_ns: Vec<f64>,
}

/// A change of a system setting or of software, during an invocation or between two invocations of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentChange {
    /// The name of the worker; absent for the first (or only) worker of the run, as in all recorded environments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// What changed: `sysctl/vm.swappiness`.
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
