//! The results of a matrix of implementations.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{AttemptOutcome, Gate};
use wb_results::Scenario;
use wb_stats::Samples;

use super::BoxStatistics;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatrixResults {
    pub metadata: MatrixMetadata,
    /// Such as `transport`.
    pub axes: Vec<String>,
    /// Cells that show what is possible.
    pub baselines: Vec<MatrixCell>,
    pub tests: Vec<MatrixCell>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatrixMetadata {
    pub test_pass: String,
    /// As in RFC 3339.
    pub started_at: String,
    /// As in RFC 3339.
    pub completed_at: String,
    pub duration_seconds: u64,
    /// The architecture: `x86_64`.
    pub platform: String,
    /// The operating system: `Linux`.
    pub os: String,
    /// Number of cells that were measured at the same time.
    pub worker_count: usize,
}

/// A pair of endpoints with what they used.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixCell {
    /// `DIALER x LISTENER (VALUE, …)`.
    pub name: String,
    /// Id of the endpoint that opened connections.
    pub dialer: String,
    /// Id of the endpoint that accepted connections.
    pub listener: String,
    /// One for each axis of the matrix; `None` where the axis does not apply.
    pub values: Vec<Option<String>>,
    /// For a baseline: the cells beside which it is shown.
    pub scope: BaselineScope,
    pub status: CellStatus,
    pub samples: usize,
    /// The number of samples that something outside the workload disturbed.
    pub disturbed: usize,
    pub scenarios: BTreeMap<Scenario, ScenarioSamples>,
    /// Times in nanoseconds from dialling to a usable connection, one for each connection.
    pub connect: Vec<f64>,
    /// Times in nanoseconds from opening a stream to the first byte of the answer, one for each stream.
    pub first_byte: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellStatus {
    Pass,
    /// The cell ended without figures.
    Fail(AttemptOutcome),
    /// The figures are impossible: the check `gate` failed.
    Invalid {
        gate: Gate,
        figures: String,
    },
}

/// The cells beside which a baseline is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BaselineScope {
    /// The cells whose limit it shows; `None` for all, unless it is only compared with some.
    pub ceiling: Option<CellFilter>,
    /// Further cells that it is compared with.
    pub comparison: Option<CellFilter>,
}

/// Names of axes with their values. A cell must have one of the values of each.
pub type CellFilter = Vec<(String, Vec<String>)>;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScenarioSamples {
    pub iterations: usize,
    /// Bytes per second or nanoseconds of each iteration of all samples, in the order in which they were taken.
    pub values: Vec<f64>,
    /// The median of the iterations of each sample. Iterations of one process vary together: only these medians are
    /// independent.
    pub samples: Vec<f64>,
    /// What disturbed each sample, by its position.
    pub disturbances: BTreeMap<usize, Vec<String>>,
    /// Whether each value is the median of several iterations because nothing else of them was reported.
    pub are_medians: bool,
    /// Bytes of an iteration, in both directions; 0 if unknown.
    pub bytes: u64,
    /// CPU time of the dialers in all iterations, in seconds; `None` if unknown.
    pub cpu_seconds: Option<f64>,
}

impl CellStatus {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::Invalid { .. } => "invalid",
        }
    }

    /// The word in the suites' files, which know no other.
    pub(super) fn suite_word(&self) -> &'static str {
        if *self == Self::Pass { "pass" } else { "fail" }
    }

    /// Why the status is not `pass`.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Pass => None,
            Self::Fail(outcome) => Some(outcome.to_string()),
            Self::Invalid { gate, figures } => Some(format!("{gate}: {figures}")),
        }
    }
}

impl MatrixCell {
    /// The values of the axes, which distinguish the panels of a heat map: `tcp, noise, yamux`.
    pub fn combination(&self) -> String {
        self.values.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn value(&self, axes: &[String], axis: &str) -> Option<&str> {
        let position = axes.iter().position(|name| name == axis)?;
        self.values.get(position)?.as_deref()
    }

    /// The figures of a scenario, if they count.
    fn counted(&self, scenario: &Scenario) -> Option<&ScenarioSamples> {
        self.scenarios.get(scenario).filter(|_| self.status == CellStatus::Pass)
    }

    /// One value of each sample; `None` unless the cell passed.
    pub(super) fn samples(&self, scenario: &Scenario) -> Option<Samples> {
        Samples::new(&self.counted(scenario)?.samples).ok()
    }

    /// `None` unless the cell passed.
    pub(super) fn iterations(&self, scenario: &Scenario) -> Option<Samples> {
        Samples::new(&self.counted(scenario)?.values).ok()
    }

    /// The statistics of the iterations of a scenario, if they count and are single ones.
    pub(super) fn statistics(&self, scenario: &Scenario) -> Option<BoxStatistics> {
        self.scenarios.get(scenario).filter(|measured| !measured.are_medians)?;
        self.iterations(scenario).map(|iterations| BoxStatistics::new(&iterations))
    }

    fn matches(&self, axes: &[String], filter: &CellFilter) -> bool {
        filter.iter().all(|(axis, values)| {
            self.value(axes, axis).is_some_and(|value| values.iter().any(|candidate| candidate == value))
        })
    }

    /// The median over the samples of a scenario, if they count.
    pub fn median(&self, scenario: &Scenario) -> Option<f64> {
        self.samples(scenario).map(|samples| samples.median())
    }

    pub(super) fn obstacle(&self, scenario: &Scenario) -> Option<String> {
        let missing = || self.samples(scenario).is_none().then(|| "not measured".to_owned());
        self.status.cause().or_else(missing)
    }
}

impl MatrixResults {
    /// The standard scenarios, then those of the peers file by name.
    pub fn scenarios(&self) -> Vec<Scenario> {
        let is_custom = |scenario: &&Scenario| !Scenario::STANDARD.contains(scenario);
        let measured = self.baselines.iter().chain(&self.tests).flat_map(|cell| cell.scenarios.keys());
        let custom: BTreeSet<&Scenario> = measured.filter(is_custom).collect();
        Scenario::STANDARD.into_iter().chain(custom.into_iter().cloned()).collect()
    }

    fn is_ceiling(&self, baseline: &MatrixCell, cell: &MatrixCell) -> bool {
        match &baseline.scope {
            BaselineScope { ceiling: Some(filter), .. } => cell.matches(&self.axes, filter),
            BaselineScope { ceiling: None, comparison } => comparison.is_none(),
        }
    }

    pub(super) fn is_shown_beside(&self, baseline: &MatrixCell, cell: &MatrixCell) -> bool {
        let is_compared = |filter: &CellFilter| cell.matches(&self.axes, filter);
        self.is_ceiling(baseline, cell) || baseline.scope.comparison.as_ref().is_some_and(is_compared)
    }

    /// The baseline with the best median of a scenario, among those that show the limit of a cell.
    pub(super) fn best_baseline(&self, cell: &MatrixCell, scenario: &Scenario) -> Option<(&MatrixCell, f64)> {
        let ceilings = self.baselines.iter().filter(|baseline| self.is_ceiling(baseline, cell));
        let measured = ceilings.filter_map(|baseline| Some((baseline, baseline.median(scenario)?)));
        if scenario.is_rate() {
            measured.max_by(|left, right| left.1.total_cmp(&right.1))
        } else {
            measured.min_by(|left, right| left.1.total_cmp(&right.1))
        }
    }

    /// The values of the axes of tests, in the order of their first occurrence.
    pub(super) fn combinations(&self) -> Vec<String> {
        in_order_of_occurrence(self.tests.iter().map(MatrixCell::combination))
    }
}

pub(super) fn in_order_of_occurrence(texts: impl Iterator<Item = String>) -> Vec<String> {
    texts.collect::<indexmap::IndexSet<String>>().into_iter().collect()
}
