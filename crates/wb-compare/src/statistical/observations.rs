//! The observations that are ranked: samples or runs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::{Build, MetricIndex, Run};

/// The number of runs per side from which the bootstrap is used, and a noise model is not needed.
pub(super) const MIN_BOOTSTRAP_RUNS: usize = 5;

/// The kind of a ranked value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObservationKind {
    /// A sample; used if a side has a single run.
    Samples,
    /// The median of a run.
    Runs,
}

impl fmt::Display for ObservationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Samples => "samples",
            Self::Runs => "runs",
        })
    }
}

/// The kind and number of ranked values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservationCounts {
    /// Their kind.
    pub unit: ObservationKind,
    /// The number on the side of the first build.
    pub reference: usize,
    /// The number on the side of the last build.
    pub judged: usize,
    /// Whether the hierarchical bootstrap resamples runs and samples.
    pub is_bootstrapped: bool,
}

impl ObservationCounts {
    /// Determines kind and numbers from the samples of each side's runs.
    pub(super) fn of(sides: [&Build; 2], runs: &[Vec<Vec<f64>>; 2]) -> Self {
        // A single run has no rank among runs: its samples are compared with all of the other side, with as little
        // certainty.
        let unit = if sides.iter().any(|side| side.runs.len() == 1) {
            ObservationKind::Samples
        } else {
            ObservationKind::Runs
        };
        let [reference, judged] = runs.each_ref().map(|runs| match unit {
            ObservationKind::Samples => runs.iter().map(Vec::len).sum(),
            ObservationKind::Runs => runs.len(),
        });
        Self {
            unit,
            reference,
            judged,
            is_bootstrapped: unit == ObservationKind::Runs && reference.min(judged) >= MIN_BOOTSTRAP_RUNS,
        }
    }
}

/// The ranked values of a side's runs.
pub(super) fn observations(runs: &[Vec<f64>], unit: ObservationKind) -> Vec<f64> {
    match unit {
        ObservationKind::Samples => runs.concat(),
        ObservationKind::Runs => runs.iter().map(|run| median(&mut run.clone())).collect(),
    }
}

/// The samples of each run of a side, without empty ones.
pub(super) fn runs(side: &Build, row: MetricIndex) -> Vec<Vec<f64>> {
    side.runs.iter().map(|run| samples(run, row)).filter(|samples| !samples.is_empty()).collect()
}

/// The finite samples of a run; its mean if no samples were recorded.
pub(crate) fn samples(run: &Run, row: MetricIndex) -> Vec<f64> {
    match run.samples(row) {
        [] => run.reading(row).and_then(|reading| reading.mean.number()).into_iter().collect(),
        samples => samples.iter().copied().filter(|sample| sample.is_finite()).collect(),
    }
}

/// The median of a non-empty slice.
fn median(samples: &mut [f64]) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let middle = samples.len() / 2;
    if samples.len().is_multiple_of(2) { (samples[middle - 1] + samples[middle]) / 2.0 } else { samples[middle] }
}
