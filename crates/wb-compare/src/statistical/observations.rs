//! What is ranked: samples or runs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::{Build, MetricIndex, Run};

/// From so many runs on each side, samples are drawn within runs, and what else is known of noise is not needed.
pub(super) const MIN_BOOTSTRAP_RUNS: usize = 5;

/// What one value that is ranked is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObservationKind {
    /// A sample, where a side has one run alone.
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

/// How many values there are, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservationCounts {
    /// What they are.
    pub unit: ObservationKind,
    /// Of the first build.
    pub src: usize,
    /// Of the last one.
    pub dst: usize,
    /// Whether a bootstrap draws them, and samples within them.
    pub is_bootstrapped: bool,
}

impl ObservationCounts {
    /// Of each side's runs with their samples.
    pub(super) fn of(sides: [&Build; 2], runs: &[Vec<Vec<f64>>; 2]) -> Self {
        // One run has no rank among runs: its samples are held against all the other side's, and trusted as little.
        let unit = if sides.iter().any(|side| side.runs.len() == 1) {
            ObservationKind::Samples
        } else {
            ObservationKind::Runs
        };
        let [src, dst] = runs.each_ref().map(|runs| match unit {
            ObservationKind::Samples => runs.iter().map(Vec::len).sum(),
            ObservationKind::Runs => runs.len(),
        });
        Self { unit, src, dst, is_bootstrapped: unit == ObservationKind::Runs && src.min(dst) >= MIN_BOOTSTRAP_RUNS }
    }
}

/// What is ranked of a side's runs.
pub(super) fn observations(runs: &[Vec<f64>], unit: ObservationKind) -> Vec<f64> {
    match unit {
        ObservationKind::Samples => runs.concat(),
        ObservationKind::Runs => runs.iter().map(|run| median(&mut run.clone())).collect(),
    }
}

/// The samples of each run of a side that has any.
pub(super) fn runs(side: &Build, row: MetricIndex) -> Vec<Vec<f64>> {
    side.runs.iter().map(|run| samples(run, row)).filter(|samples| !samples.is_empty()).collect()
}

/// The samples of a run; its mean where it kept none.
pub(crate) fn samples(run: &Run, row: MetricIndex) -> Vec<f64> {
    match run.samples(row) {
        [] => run.reading(row).and_then(|reading| reading.mean.known()).into_iter().collect(),
        samples => samples.iter().copied().filter(|sample| sample.is_finite()).collect(),
    }
}

/// Of what is not empty.
fn median(samples: &mut [f64]) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let middle = samples.len() / 2;
    if samples.len().is_multiple_of(2) { (samples[middle - 1] + samples[middle]) / 2.0 } else { samples[middle] }
}
