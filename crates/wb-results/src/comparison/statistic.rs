//! The compared statistics of a metric's samples.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The statistic of a metric's samples that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The arithmetic mean, in the metric's unit.
    Mean,
    /// The standard deviation, in percent of the mean.
    Stddev,
}

impl Statistic {
    pub const ALL: [Self; 2] = [Self::Mean, Self::Stddev];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Stddev => "stddev",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|statistic| statistic.as_str() == text)
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
