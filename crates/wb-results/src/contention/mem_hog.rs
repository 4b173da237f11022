//! Scenarios with a memory hog.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use super::Percentile;

/// The scenario `mem-hog`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemHog {
    /// Number of repetitions.
    pub loops: u32,
    /// Rate of hashd, relative to its maximum.
    pub load: f64,
    /// How fast the hog grows.
    pub speed: HogSpeed,
}

/// The scenario `mem-hog-tune`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemHogTune {
    /// Rate of hashd, relative to its maximum.
    pub load: f64,
    /// How fast the hog grows.
    pub speed: HogSpeed,
    /// Smallest footprint to try.
    pub size_min: Bytes,
    /// Largest footprint to try: the first.
    pub size_max: Bytes,
    /// Number of steps from the largest to the smallest.
    pub intvs: u32,
    /// Percentile of the isolation over the seconds that decides.
    pub isol_pct: Percentile,
    /// Isolation that it has to reach.
    pub isol_thr: f64,
}

/// Growth of a memory hog, relative to the device's write bandwidth by its io.cost model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HogSpeed {
    /// A tenth.
    #[serde(rename = "10%")]
    Tenth,
    /// A quarter.
    #[serde(rename = "25%")]
    Quarter,
    /// A half.
    #[serde(rename = "50%")]
    Half,
    /// As fast.
    #[serde(rename = "1x")]
    Equal,
    /// Twice as fast.
    #[serde(rename = "2x")]
    Double,
}

impl HogSpeed {
    pub const ALL: [Self; 5] = [Self::Tenth, Self::Quarter, Self::Half, Self::Equal, Self::Double];

    /// Growth, relative to the write bandwidth.
    pub const fn factor(self) -> f64 {
        match self {
            Self::Tenth => 0.1,
            Self::Quarter => 0.25,
            Self::Half => 0.5,
            Self::Equal => 1.0,
            Self::Double => 2.0,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Tenth => "10%",
            Self::Quarter => "25%",
            Self::Half => "50%",
            Self::Equal => "1x",
            Self::Double => "2x",
        }
    }
}

impl fmt::Display for HogSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
