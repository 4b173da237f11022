//! Distributions of a figure over the seconds of a measurement.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Percentile;

/// Percentiles, arithmetic mean and standard deviation of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Percentiles.
    pub percentiles: BTreeMap<Percentile, f64>,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation; 0 for a single value.
    pub stdev: f64,
}

impl Distribution {
    /// A percentile, if it has been computed.
    pub fn get(&self, percentile: Percentile) -> Option<f64> {
        self.percentiles.get(&percentile).copied()
    }
}
