//! Failed attempts, and how their shares compare.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfidenceInterval, TestPValues};

/// The number of attempts at the samples of a cell without warm-ups, and how many of them failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptCounts {
    /// The number of failed attempts.
    pub failed: u32,
    /// The number of attempts; 0 if the results do not record them.
    pub attempts: u32,
}

impl std::ops::Add for AttemptCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            failed: self.failed.saturating_add(other.failed),
            attempts: self.attempts.saturating_add(other.attempts),
        }
    }
}

/// The comparison of the shares of attempts that failed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureSummary {
    /// The share in the last build minus that in the first.
    pub difference: f64,
    /// Its confidence interval.
    pub interval: ConfidenceInterval,
    /// The p-value (Fisher's exact test), before and after all corrections.
    pub p_value: TestPValues,
}
