//! Factors of durations.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A factor by which durations are shortened for a trial, whose figures mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TimeScale(f64);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a number from 0.01 to 1")]
pub struct ParseTimeScaleError;

impl FromStr for TimeScale {
    type Err = ParseTimeScaleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let scale = text.parse().ok().filter(|scale| (0.01..=1.0).contains(scale));
        scale.map(Self).ok_or(ParseTimeScaleError)
    }
}

impl TimeScale {
    pub fn factor(self) -> f64 {
        self.0
    }
}
