//! Confidence intervals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::Interval;

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfidenceInterval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The confidence level.
    pub confidence: f64,
}

impl From<Interval> for ConfidenceInterval {
    fn from(interval: Interval) -> Self {
        Self { low: interval.low, high: interval.high, confidence: interval.confidence }
    }
}
