//! Helpers of the unit tests: folders of artefacts, and the outcome of their evaluation.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "these are helpers of tests")]

use tempfile::TempDir;
use wb_model::outcome::Gate;
use wb_model::{MetricKey, Validity};
use wb_test::Measurement;

/// Creates a folder of artefacts with these files.
pub fn artefact_folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// The value of `CLASS/METRIC`.
pub fn value(measurement: &Measurement, metric: &str) -> f64 {
    measurement.values[&metric.parse::<MetricKey>().unwrap()]
}

/// The gate that a measurement failed, if any.
pub fn failed_gate(measurement: &Measurement) -> Option<Gate> {
    match &measurement.validity {
        Validity::Valid => None,
        Validity::Invalid { gate, .. } => Some(*gate),
    }
}
