use std::collections::BTreeMap;

use wb_model::outcome::Gate;
use wb_model::{Class, Metric, MetricKey, Nanos, Unit, Validity};

/// Prefix of provenance keys that name a program built by the test: `built affine sha256`.
pub const BUILT_PREFIX: &str = "built ";
/// Provenance key of the hash of a definition's text.
pub const DEFINITION_SHA256: &str = "definition sha256";
/// Prefix of provenance keys that name a file used by a definition: `file {definition-folder}/load.sh sha256`.
pub const DEFINITION_FILE_PREFIX: &str = "file ";

/// The values of one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// By metric; the study adds those of single workers.
    pub values: BTreeMap<MetricKey, f64>,
    pub validity: Validity,
    /// Seconds of the measured part, without start, filling, calibration and warm-up; none if the test cannot separate
    /// it from the run time of its processes.
    pub intervals: Option<f64>,
    pub curves: Vec<SampleCurve>,
    /// Per interval and kind of operation.
    pub latencies: Vec<LatencySeries>,
    /// A sentence each.
    pub findings: Vec<String>,
    /// Outputs that have to be the same in every sample of a cell, or their digests, by name.
    pub outputs: BTreeMap<String, String>,
    /// Circumstances that may explain the values, such as instruction set and versions, by name.
    pub provenance: BTreeMap<String, String>,
}

impl Default for Measurement {
    fn default() -> Self {
        Self {
            values: BTreeMap::new(),
            validity: Validity::Valid,
            intervals: None,
            curves: Vec::new(),
            latencies: Vec::new(),
            findings: Vec::new(),
            outputs: BTreeMap::new(),
            provenance: BTreeMap::new(),
        }
    }
}

impl Measurement {
    pub fn with_value(mut self, class: Class, metric: &str, value: f64) -> Self {
        self.set(class, metric, value);
        self
    }

    pub fn set(&mut self, class: Class, metric: &str, value: f64) {
        self.values.insert(MetricKey::new(class, metric), value);
    }

    pub fn get(&self, metric: &Metric) -> Option<f64> {
        self.values.get(&metric.key()).copied()
    }

    /// Rejects the values, unless an earlier gate already did.
    pub fn reject(&mut self, gate: Gate, figures: impl Into<String>) {
        if self.validity == Validity::Valid {
            self.validity = Validity::Invalid { gate, figures: figures.into() };
        }
    }

    /// Rejects the values unless `holds`.
    pub fn require(&mut self, holds: bool, gate: Gate, figures: impl FnOnce() -> String) {
        if !holds {
            self.reject(gate, figures());
        }
    }

    pub fn with_duration(mut self, seconds: f64) -> Self {
        self.intervals = Some(seconds);
        self
    }

    /// Adds a circumstance that may explain the values.
    pub fn add_provenance(&mut self, name: &str, value: impl ToString) {
        self.provenance.insert(name.to_owned(), value.to_string());
    }
}

/// Why a sample has no values: the gate that it failed, with figures.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{gate}: {figures}")]
pub struct Rejection {
    pub gate: Gate,
    /// That show the failure.
    pub figures: String,
}

impl Rejection {
    /// Rejects output that cannot be parsed.
    pub fn output(figures: impl Into<String>) -> Self {
        Self { gate: Gate::Output, figures: figures.into() }
    }
}

/// A curve measured by one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleCurve {
    /// Kind of operation.
    pub title: String,
    /// Quantity along the horizontal axis, and its unit.
    pub x: (String, Unit),
    /// Measured quantity, and its unit.
    pub y: (String, Unit),
    /// By name, with points in ascending order of x.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// Latency histograms of one kind of operation, one per interval.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencySeries {
    pub title: String,
    pub interval: Nanos,
    /// One histogram per interval: (latency in nanoseconds, operations), latencies ascending.
    pub seconds: Vec<Vec<(u64, u64)>>,
}
