//! Result of one sample, and conclusions from several cells.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::outcome::Gate;
use wb_model::{Class, Metric, Unit, Validity};

/// Prefix of provenance keys that name a program built by the test: `built affine sha256`. `built affine sha256`.
pub const BUILT_PREFIX: &str = "built ";
/// The name of the hash of a definition's text in a provenance.
pub const DEFINITION_SHA256: &str = "definition sha256";
/// With this begins, in a provenance, the name of a file that a definition names: `file {here}/load.sh sha256`.
pub const DEFINITION_FILE_PREFIX: &str = "file ";

/// The values of one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// By `CLASS/METRIC`.
    pub values: BTreeMap<String, f64>,
    /// Whether they count.
    pub validity: Validity,
    /// How long the measured part of the sample took: without start, filling, calibration and warming up. None
    /// where the test cannot tell it from the time of its processes.
    pub seconds: Option<f64>,
    /// Curves, each with its own axes.
    pub curves: Vec<SampleCurve>,
    /// Latencies per second, by kind of operation.
    pub latencies: Vec<LatencySeries>,
    /// What was noticed, each in a sentence.
    pub findings: Vec<String>,
    /// Output that has to be the same in every sample of a cell, or a digest of it, by what it is.
    pub outputs: BTreeMap<String, String>,
    /// What may explain the values: instruction set, versions, means.
    pub provenance: BTreeMap<String, String>,
}

impl Default for Measurement {
    fn default() -> Self {
        Self {
            values: BTreeMap::new(),
            validity: Validity::Valid,
            seconds: None,
            curves: Vec::new(),
            latencies: Vec::new(),
            findings: Vec::new(),
            outputs: BTreeMap::new(),
            provenance: BTreeMap::new(),
        }
    }
}

impl Measurement {
    /// With a value.
    pub fn with_value(mut self, class: Class, metric: &str, value: f64) -> Self {
        self.set(class, metric, value);
        self
    }

    /// Sets a value.
    pub fn set(&mut self, class: Class, metric: &str, value: f64) {
        self.values.insert(format!("{class}/{metric}"), value);
    }

    /// The value of a metric.
    pub fn get(&self, metric: &Metric) -> Option<f64> {
        self.values.get(&format!("{}/{}", metric.class, metric.name)).copied()
    }

    /// Marks the values as not counting, unless an earlier gate did so already.
    pub fn reject(&mut self, gate: Gate, figures: impl Into<String>) {
        if self.validity == Validity::Valid {
            self.validity = Validity::Invalid { gate, figures: figures.into() };
        }
    }

    /// Marks the values as not counting where `holds` is false.
    pub fn require(&mut self, holds: bool, gate: Gate, figures: impl FnOnce() -> String) {
        if !holds {
            self.reject(gate, figures());
        }
    }

    /// Says how long the measured part took.
    pub fn with_duration(mut self, seconds: f64) -> Self {
        self.seconds = Some(seconds);
        self
    }

    /// Notes something that may explain the values.
    pub fn add_provenance(&mut self, what: &str, value: impl ToString) {
        self.provenance.insert(what.to_owned(), value.to_string());
    }
}

/// Why a sample has no values: the gate that it failed, with figures.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{gate}: {figures}")]
pub struct Rejection {
    /// The question it did not stand up to.
    pub gate: Gate,
    /// The figures that say so.
    pub figures: String,
}

impl Rejection {
    /// Output that cannot be read.
    pub fn output(figures: impl Into<String>) -> Self {
        Self { gate: Gate::Output, figures: figures.into() }
    }
}

/// A curve that one sample measured.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleCurve {
    /// What it shows.
    pub title: String,
    /// What runs along it, and its unit.
    pub x: (String, Unit),
    /// What was measured, and its unit.
    pub y: (String, Unit),
    /// Lines by name, each with points of x ascending.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// Latency histograms of one kind of operation, one per interval.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencySeries {
    /// Of which operations.
    pub title: String,
    /// One histogram per second: (latency in nanoseconds, operations), latencies ascending.
    pub seconds: Vec<Vec<(u64, u64)>>,
}

/// What follows from several cells together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conclusion {
    /// The cells that it follows from, `PROFILE/TEST/SERIAL`, with `@WORKER` where it is of one of several workers.
    pub cells: String,
    /// What it is.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// How it follows, in a sentence, with the figures it follows from.
    pub explanation: String,
}
