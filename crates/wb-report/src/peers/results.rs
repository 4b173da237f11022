//! The results of a matrix of implementations.

use std::collections::BTreeMap;

use wb_model::{AttemptOutcome, Gate, Validity};
use wb_peers::Scenario;
use wb_stats::Samples;

/// The results of a matrix.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatrixResults {
    /// When and where it was measured.
    pub metadata: MatrixMetadata,
    /// Names of the axes, such as `transport`.
    pub axes: Vec<String>,
    /// Cells that show what is possible.
    pub baselines: Vec<MatrixCell>,
    /// All other cells.
    pub tests: Vec<MatrixCell>,
}

/// When and where a matrix was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatrixMetadata {
    /// Name of the run.
    pub test_pass: String,
    /// Start, as in RFC 3339.
    pub started_at: String,
    /// End, as in RFC 3339.
    pub completed_at: String,
    /// Duration in seconds.
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
    /// Its name: `DIALER x LISTENER (VALUE, …)`.
    pub name: String,
    /// Id of the endpoint that opened connections.
    pub dialer: String,
    /// Id of the endpoint that accepted them.
    pub listener: String,
    /// By axis of the matrix, the value; `None` where the axis does not apply.
    pub values: Vec<Option<String>>,
    /// Whether it was measured.
    pub status: CellStatus,
    /// The samples of each measured scenario.
    pub scenarios: BTreeMap<Scenario, ScenarioSamples>,
    /// Times in nanoseconds from dialling to a usable connection, one for each connection.
    pub connect: Vec<f64>,
    /// Times in nanoseconds from opening a stream to the first byte of the answer, one for each stream.
    pub first_byte: Vec<f64>,
}

/// Whether a cell was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellStatus {
    /// It was measured.
    Pass,
    /// It ended without figures.
    Fail(AttemptOutcome),
    /// Its figures are impossible.
    Invalid {
        /// The failed check.
        gate: Gate,
        /// The figures that failed it.
        figures: String,
    },
}

/// The samples of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioSamples {
    /// Number of requested iterations.
    pub iterations: usize,
    /// Bytes per second or nanoseconds, in the order in which they were taken.
    pub samples: Vec<f64>,
    /// Whether they are plausible.
    pub validity: Validity,
}

impl CellStatus {
    /// Its word in the suites' files.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::Invalid { .. } => "invalid",
        }
    }

    /// Why it is not `pass`.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Pass => None,
            Self::Fail(outcome) => Some(outcome.to_string()),
            Self::Invalid { gate, figures } => Some(format!("{gate}: {figures}")),
        }
    }
}

impl MatrixCell {
    /// The values of its axes, which distinguish the panels of a heat map: `tcp, noise, yamux`.
    pub fn combination(&self) -> String {
        self.values.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// The value of an axis.
    pub(super) fn value(&self, axes: &[String], axis: &str) -> Option<&str> {
        let at = axes.iter().position(|name| name == axis)?;
        self.values.get(at)?.as_deref()
    }

    /// The samples of a scenario, if they count.
    pub(super) fn valid_samples(&self, scenario: Scenario) -> Option<Samples> {
        let measured = self.scenarios.get(&scenario).filter(|measured| measured.validity == Validity::Valid)?;
        (self.status == CellStatus::Pass).then(|| Samples::new(&measured.samples).ok()).flatten()
    }

    /// The median of a scenario, if its samples count.
    pub fn median(&self, scenario: Scenario) -> Option<f64> {
        self.valid_samples(scenario).map(|samples| samples.median())
    }

    /// Why a scenario has no median.
    pub(super) fn obstacle(&self, scenario: Scenario) -> Option<String> {
        let measured = self.scenarios.get(&scenario);
        let invalid = match measured.map(|measured| &measured.validity) {
            Some(Validity::Invalid { gate, figures }) => Some(format!("{gate}: {figures}")),
            _ => None,
        };
        let missing = || self.valid_samples(scenario).is_none().then(|| "not measured".to_owned());
        self.status.cause().or(invalid).or_else(missing)
    }
}

impl MatrixResults {
    /// The baseline with the best median of a scenario.
    pub(super) fn best_baseline(&self, scenario: Scenario) -> Option<(&MatrixCell, f64)> {
        let measured = self.baselines.iter().filter_map(|cell| Some((cell, cell.median(scenario)?)));
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

/// The different texts, in the order of their first occurrence.
pub(super) fn in_order_of_occurrence(texts: impl Iterator<Item = String>) -> Vec<String> {
    texts.collect::<indexmap::IndexSet<String>>().into_iter().collect()
}
