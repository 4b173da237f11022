//! The results of one run as evaluated from its samples: the contents of `result.json`, and the input of reports.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use wb_model::Purpose;
use wb_model::{
    AttemptOutcome, CellId, CellOutcome, DefinitionKey, Metric, MetricKey, Params, System, Unit, Validity, WorkerName,
    with_worker,
};
use wb_stats::{Dependence, DependenceCheck, SamplingRule, Summary};
pub use wb_tests::Conclusion;

use crate::findings::without_figures;

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
    /// What was imported from each file; empty if the run has measured everything itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<ImportedSource>,
    /// The number of lines of the journal without a checksum, which earlier versions of the program wrote: a flipped bit
    /// in one of them may go unnoticed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unchecked_lines: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl RunInfo {
    /// The note on lines of the journal without a checksum, if there are any.
    pub fn checksum_note(&self) -> Option<String> {
        let lines = Some(self.unchecked_lines).filter(|lines| *lines > 0)?;
        let lines = wb_model::pluralize(lines, "line");
        Some(format!(
            "{lines} of the journal without a checksum, from an earlier version: a flipped bit may go unnoticed"
        ))
    }
}

/// A file whose results were imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedSource {
    /// The name of its copy in the run; its hash if there is no copy.
    pub file: String,
    /// The program that wrote it, with its version if the file has it: `fio-3.33`.
    pub program: String,
    /// The number of cells with samples of it.
    pub cells: usize,
    /// The number of its samples.
    pub samples: usize,
    /// The number of metrics in these samples.
    pub metrics: usize,
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

    /// All attempts in time order, with the samples of series. Those are made one at a time: all at once would take a
    /// kilobyte each.
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

/// The failed attempts at the samples of a cell. Warm-ups are not included unless no attempt got beyond them, nor are attempts
/// that the user ended, and invalid or disturbed samples did not fail.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Failures {
    /// The number of attempts that did not complete: that crashed, timed out, were refused or lost their worker.
    pub failed: usize,
    /// The number of all attempts.
    pub attempts: usize,
    /// The most frequent cause of failure, as of its first attempt; absent if none failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How many of the failed attempts had it; 0 if that was not recorded.
    #[serde(default)]
    pub cause_count: usize,
}

impl Failures {
    /// Counts the failures among attempts and in series of imported samples. A cell that already failed in its warm-ups has
    /// no other attempts.
    pub fn of(attempts: &[AttemptResult], series: &[SampleSeries]) -> Self {
        let of_purpose = |purpose| {
            move |attempt: &&AttemptResult| attempt.purpose == purpose && attempt.outcome != AttemptOutcome::Cancelled
        };
        let last_warm_up = attempts.iter().rfind(of_purpose(Purpose::WarmUp));
        let failed_before = last_warm_up.is_some_and(|last| !last.outcome.is_completed())
            && !attempts.iter().any(|attempt| attempt.purpose == Purpose::Sample);
        let is_tried = of_purpose(if failed_before { Purpose::WarmUp } else { Purpose::Sample });
        let tried = attempts.iter().filter(is_tried);
        let of_series = series.iter().flat_map(|series| &series.excluded);
        let failed = tried.clone().map(|attempt| &attempt.outcome).chain(of_series.map(|excluded| &excluded.outcome));
        // Causes that differ only in their figures are the same one; counted in order, so that the first stands for it.
        let mut causes: Vec<(String, String, usize)> = Vec::new();
        for cause in failed.filter(|outcome| !outcome.is_completed()).map(ToString::to_string) {
            let kind = without_figures(&cause);
            match causes.iter_mut().find(|(existing, ..)| *existing == kind) {
                Some((.., count)) => *count += 1,
                None => causes.push((kind, cause, 1)),
            }
        }
        let failed = causes.iter().map(|(.., count)| count).sum();
        // The last of equal maxima is the first of the reversed causes.
        let most_frequent = causes.into_iter().rev().max_by_key(|(.., count)| *count);
        let (cause, cause_count) = most_frequent.map(|(_, cause, count)| (cause, count)).unzip();
        Self {
            failed,
            attempts: tried.count() + series.iter().map(|series| series.count as usize).sum::<usize>(),
            cause,
            cause_count: cause_count.unwrap_or_default(),
        }
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

/// Samples of one imported file, as columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleSeries {
    /// The number of the first sample in the cell; the others follow.
    pub first_sample: u32,
    /// The number of samples.
    pub count: u32,
    /// Elapsed time in seconds from the start of the run's first invocation to the import.
    pub start_seconds: f64,
    /// The durations of the samples in seconds, of their measured parts alone; empty if none is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured_seconds: Vec<Option<f64>>,
    /// Whether its samples are in the cell's result, apart from the excluded ones.
    pub counted: bool,
    /// The samples that failed or are invalid, by ascending position from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<ExcludedSample>,
    /// The values of each metric, by `CLASS/METRIC`; null where a sample has none, and absent at the end.
    pub values: BTreeMap<MetricKey, Vec<Option<f64>>>,
    /// The folder of the copy of the file, relative to the run folder.
    pub folder: String,
}

/// A sample of a series that is not in the cell's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExcludedSample {
    /// Its position in the series, from 0.
    pub position: u32,
    /// How it ended: completed, failed, …
    pub outcome: AttemptOutcome,
    /// Whether its values passed the plausibility checks; absent if it did not complete.
    pub validity: Option<Validity>,
}

impl SampleSeries {
    /// The exclusion of a sample, if it is excluded.
    pub fn excluded(&self, position: u32) -> Option<&ExcludedSample> {
        let found = self.excluded.binary_search_by_key(&position, |excluded| excluded.position);
        found.ok().map(|at| &self.excluded[at])
    }

    /// A sample as an attempt; `None` if there are fewer.
    pub fn sample(&self, position: u32) -> Option<AttemptResult> {
        if position >= self.count {
            return None;
        }
        let at = position as usize;
        let excluded = self.excluded(position);
        let seconds = self.measured_seconds.get(at).copied().flatten().unwrap_or(0.0);
        let values = self.values.iter();
        Some(AttemptResult {
            sample: self.first_sample.saturating_add(position),
            attempt: 0,
            purpose: Purpose::Sample,
            start_seconds: self.start_seconds,
            seconds,
            measured_seconds: if self.has_failed(position) { 0.0 } else { seconds },
            outcome: excluded.map_or(AttemptOutcome::Completed, |excluded| excluded.outcome.clone()),
            validity: excluded.map_or(Some(Validity::Valid), |excluded| excluded.validity.clone()),
            disturbances: Vec::new(),
            counted: self.is_counted(position),
            values: values.filter_map(|(key, values)| Some((key.clone(), (*values.get(at)?)?))).collect(),
            folder: self.folder.clone(),
        })
    }

    /// Whether a sample did not complete.
    fn has_failed(&self, position: u32) -> bool {
        self.excluded(position).is_some_and(|excluded| excluded.validity.is_none())
    }

    /// Whether a sample is in the cell's result.
    pub fn is_counted(&self, position: u32) -> bool {
        self.counted && self.excluded(position).is_none()
    }

    /// The counted values of a metric, each with the number of its sample.
    pub fn counted_values(&self, metric: &MetricKey) -> impl Iterator<Item = (u32, f64)> {
        let values = self.values.get(metric).map_or(&[][..], Vec::as_slice).iter().take(self.count as usize);
        let counted = (0..).zip(values).filter(|(position, _)| self.is_counted(*position));
        counted.filter_map(|(position, value)| Some((self.first_sample + position, (*value)?)))
    }
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
    /// Percentiles over the time within a sample: medians over the samples. Absent in results of earlier versions, and of
    /// samples with a single interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<CurveSet>,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(purpose: Purpose, outcome: AttemptOutcome) -> AttemptResult {
        AttemptResult {
            sample: 0,
            attempt: 0,
            purpose,
            start_seconds: 0.0,
            seconds: 1.0,
            measured_seconds: 1.0,
            validity: outcome.is_completed().then_some(Validity::Valid),
            outcome,
            disturbances: vec!["steal 3 %".to_owned()],
            counted: false,
            values: BTreeMap::new(),
            folder: String::new(),
        }
    }

    fn crashed(status: &str) -> AttemptOutcome {
        AttemptOutcome::Crashed { status: status.to_owned() }
    }

    #[test]
    fn failures_are_attempts_that_did_not_complete_without_warm_ups_and_cancelled_ones() {
        let sample = |outcome| attempt(Purpose::Sample, outcome);
        let attempts = [
            attempt(Purpose::WarmUp, crashed("cold")),
            sample(AttemptOutcome::Completed),
            sample(crashed("no memory")),
            sample(crashed("stopped after 3 ms")),
            sample(AttemptOutcome::Completed),
            sample(crashed("stopped after 4 ms")),
            sample(AttemptOutcome::Cancelled),
        ];
        let failures = Failures::of(&attempts, &[]);
        assert_eq!((failures.failed, failures.attempts), (3, 5));
        assert_eq!((failures.cause.as_deref(), failures.cause_count), (Some("crashed (stopped after 3 ms)"), 2));
        assert_eq!(Failures::of(&attempts[..2], &[]), Failures { attempts: 1, ..Failures::default() });
        let only_warm_ups = Failures::of(&attempts[..1], &[]);
        assert_eq!((only_warm_ups.failed, only_warm_ups.attempts), (1, 1));
        let interrupted = [attempt(Purpose::WarmUp, AttemptOutcome::Completed), sample(AttemptOutcome::Cancelled)];
        assert_eq!(Failures::of(&interrupted[..1], &[]), Failures::default());
        assert_eq!(Failures::of(&interrupted, &[]), Failures::default());
    }

    #[test]
    fn of_equally_frequent_causes_the_first_is_named() {
        let attempts = ["a", "b"].map(|status| attempt(Purpose::Sample, crashed(status)));
        assert_eq!(Failures::of(&attempts, &[]).cause.as_deref(), Some("crashed (a)"));
    }

    #[test]
    fn failed_samples_of_series_are_failures_and_invalid_ones_are_not() {
        let excluded = |position, outcome: AttemptOutcome| ExcludedSample {
            position,
            validity: outcome.is_completed().then_some(Validity::Valid),
            outcome,
        };
        let series = SampleSeries {
            first_sample: 0,
            count: 9,
            start_seconds: 0.0,
            measured_seconds: Vec::new(),
            counted: true,
            excluded: vec![excluded(1, crashed("no disk")), excluded(3, AttemptOutcome::Completed)],
            values: BTreeMap::new(),
            folder: String::new(),
        };
        let failures = Failures::of(&[], &[series]);
        assert_eq!((failures.failed, failures.attempts), (1, 9));
    }
}
