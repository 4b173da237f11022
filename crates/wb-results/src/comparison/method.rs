//! The methods of comparison.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A comparison method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonMethod {
    /// Differences in percent compared with a limit, as in run-perf.
    Tolerance,
    /// Ratios and their uncertainty.
    Statistical,
}

impl ComparisonMethod {
    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tolerance => "tolerance",
            Self::Statistical => "statistical",
        }
    }
}
