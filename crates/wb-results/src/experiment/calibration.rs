//! Calibrations: a system against itself, in each primary metric of each case.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::{Proportion, VarianceComponents};

use super::{ComparedMetric, Criterion};

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

impl CalibrationExperiment {
    /// The calibrations of each case, one for each metric.
    pub fn by_case(&self) -> impl Iterator<Item = &[CalibrationCase]> {
        self.cases.chunk_by(|one, other| one.case == other.case)
    }

    pub fn metric(&self, case: &CalibrationCase) -> ComparedMetric {
        case.metric.clone().unwrap_or_else(|| self.criterion.compared_metric())
    }
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

/// The result of a calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// The number of samples.
    pub samples: usize,
    /// The number of disturbed samples.
    pub disturbed: usize,
    /// The result of each design.
    pub designs: Vec<DesignResult>,
    /// The variance components of all samples.
    pub variance_components: VarianceComponents,
    /// The variance components without disturbed samples.
    pub undisturbed_variance_components: VarianceComponents,
}

/// A design: how samples are assigned to two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// All of one side, then all of the other, within a run: `AAAA BBBB`. Compared by the tests of the shift.
    Blocked,
    /// Alternately within a run, with a changing order: `ABBA`. Compared by the signed-rank test of pairs.
    Interleaved,
    /// Each side from a different run, one after the other. Compared by the tests of the shift, as if runs did not differ.
    Runs,
}

impl Design {
    pub const ALL: [Self; 3] = [Self::Blocked, Self::Interleaved, Self::Runs];
}

/// The result of a design.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DesignResult {
    /// The design.
    pub design: Design,
    /// The share of comparisons with a significant difference; `None` without any comparison.
    pub beyond_chance: Option<Proportion>,
    /// The share of comparisons with a verdict of improved or regressed: significant and beyond the threshold.
    pub verdicts: Option<Proportion>,
    /// The smallest difference, in percent, that would have been improved or regressed in 80 % of the comparisons;
    /// `None` if there are too few samples for an interval.
    pub detectable_percent: Option<f64>,
}
