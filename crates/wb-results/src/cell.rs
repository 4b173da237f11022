//! The result of a cell, and of its metrics.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{CellId, CellOutcome, DefinitionKey, Metric, MetricKey, Params, WorkerName};
use wb_stats::{Dependence, DependenceCheck, SamplingRule, Summary};

use crate::{AttemptResult, CurveSet, Failures, NestedLatency, SampleSeries};

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
    /// The results of its metrics: first over all workers, the primary metrics first, then of each worker if there are
    /// several.
    pub metrics: Vec<MetricResult>,
    /// All attempts, in time order: samples and warm-ups, including failed ones.
    pub attempts: Vec<AttemptResult>,
    /// Samples of imported files, as columns, if there are too many of them to be listed as attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<SampleSeries>,
    /// How many attempts at samples failed. Without attempts in results of earlier versions.
    #[serde(default)]
    pub failures: Failures,
    /// The status other than 0 with which the command of its counted samples ended, whenever it was not ended by a signal;
    /// absent if it ever ended with 0. Where it does in another build, these samples are failed attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// Whether counted samples depend on those before them, by the primary metric that shows it most clearly; absent
    /// below 6 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependence: Option<Dependence>,
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
    /// The primary metrics, which determine convergence and the verdicts of comparisons, over all workers.
    pub fn primary_metrics(&self) -> impl Iterator<Item = &MetricResult> {
        self.metrics.iter().filter(|result| result.metric.primary)
    }

    /// The first primary metric, which stands for the cell where only one figure is shown. `None` if the test has no
    /// primary metric.
    pub fn primary(&self) -> Option<&MetricResult> {
        self.primary_metrics().next()
    }

    /// The result of the check whether its samples depend on each other; `None` without samples of a primary metric.
    pub fn dependence_check(&self) -> Option<DependenceCheck> {
        let has_samples = self.primary_metrics().any(|result| result.summary.is_some());
        let check = self.dependence.as_ref().map(Dependence::check);
        has_samples.then(|| check.unwrap_or(DependenceCheck::TooFewSamples))
    }

    /// The duration of the measured parts of all its samples and warm-ups, in seconds.
    pub fn measured_seconds(&self) -> f64 {
        let of_series = self.series.iter().flat_map(|series| {
            let seconds = (0..).zip(&series.measured_seconds);
            seconds.filter(|(position, _)| !series.has_failed(*position)).filter_map(|(_, seconds)| *seconds)
        });
        self.attempts.iter().map(|sample| sample.measured_seconds).chain(of_series).sum()
    }

    /// All attempts in time order, with the samples of series. They are created one at a time, as each takes a
    /// kilobyte.
    pub fn samples(&self) -> impl Iterator<Item = Cow<'_, AttemptResult>> {
        self.attempts.iter().map(Cow::Borrowed).chain(self.series_samples(1).map(Cow::Owned))
    }

    /// The number of samples in series.
    pub fn series_count(&self) -> usize {
        self.series.iter().map(|series| series.count as usize).sum()
    }

    /// Every n-th sample of each series.
    pub fn series_samples(&self, step: usize) -> impl Iterator<Item = AttemptResult> {
        self.series.iter().flat_map(move |series| {
            (0..series.count).step_by(step.max(1)).filter_map(|position| series.sample(position))
        })
    }

    /// The counted values of a metric, in time order.
    pub fn counted_values(&self, metric: &MetricKey) -> impl Iterator<Item = f64> {
        let attempts = self.attempts.iter().filter(|sample| sample.counted);
        let attempts = attempts.filter_map(|sample| sample.values.get(metric).copied());
        attempts.chain(self.series.iter().flat_map(|series| series.counted_values(metric).map(|(_, value)| value)))
    }
}

/// The result of a metric over the counted samples of a cell ([`AttemptResult::counted`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricResult {
    /// The metric: name, class, unit and direction.
    pub metric: Metric,
    /// The worker that it was measured on; absent for the result over all workers.
    pub worker: Option<WorkerName>,
    /// The smallest difference that matters in comparisons, in percent; absent if the plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
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
