//! Results of experiments: variants sampled in interleaved order, and A/A calibrations.
//!
//! Start with [`Experiment`].

mod calibration;
mod criterion;
mod duplicates;
mod variant_result;
mod variants;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::MetricKey;

pub use calibration::{Calibration, CalibrationCase, CalibrationExperiment, Design, DesignResult};
pub use criterion::{ComparedMetric, Criterion};
pub use duplicates::DuplicateVariants;
pub use variant_result::{StoppingState, VariantResult, VariantVerdict};
pub use variants::{VariantCase, VariantExperiment, VariantSummary};

/// The experiment that a run was recorded for: variants, or an A/A calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// A comparison of variants.
    Variants(VariantExperiment),
    /// An A/A calibration.
    Calibration(CalibrationExperiment),
}

impl Experiment {
    /// Each once.
    pub fn metrics(&self) -> Vec<MetricKey> {
        let of_cases: Vec<MetricKey> = match self {
            Self::Variants(variants) => variants.cases.iter().map(|case| variants.metric(case).metric).collect(),
            Self::Calibration(calibration) => {
                calibration.cases.iter().map(|case| calibration.metric(case).metric).collect()
            }
        };
        let mut seen = BTreeSet::new();
        of_cases.into_iter().filter(|metric| seen.insert(metric.clone())).collect()
    }

    pub fn criterion(&self) -> &Criterion {
        match self {
            Self::Variants(variants) => &variants.criterion,
            Self::Calibration(calibration) => &calibration.criterion,
        }
    }
}
