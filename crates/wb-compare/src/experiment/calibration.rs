//! Calibrations: a system against itself, in each primary metric of each case.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ComparedMetric, Criterion};
use crate::calibrate::Calibration;

/// The A/A calibration of a system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationExperiment {
    /// When two sides are reported as different.
    pub criterion: Criterion,
    /// The number of samples per side of a comparison.
    pub samples_per_side: usize,
    /// The calibration for each case of the test, in each of its primary metrics. Those of a case follow each other.
    pub cases: Vec<CalibrationCase>,
    /// The runs (`run-007`) added by the last `calibrate`; empty if it measured all runs in the folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
}

/// The A/A calibration of one case, in one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationCase {
    /// The case: `rw=read,bs=4k`.
    pub case: String,
    /// The metric; `None` if an older version recorded the run, which calibrated that of the criterion.
    #[serde(default)]
    pub metric: Option<ComparedMetric>,
    /// The number of runs.
    pub runs: usize,
    /// The number of distinct boots in which these runs were made.
    pub boots: usize,
    /// Why runs have fewer counted samples than required, by the name of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shortfalls: BTreeMap<String, String>,
    /// The false-positive rates and the sources of noise.
    pub calibration: Calibration,
}

impl CalibrationExperiment {
    /// The calibrations of each case, one for each metric.
    pub fn by_case(&self) -> impl Iterator<Item = &[CalibrationCase]> {
        self.cases.chunk_by(|one, other| one.case == other.case)
    }

    pub fn metric(&self, case: &CalibrationCase) -> ComparedMetric {
        case.metric.clone().unwrap_or_else(|| self.criterion.compared_metric())
    }
}
