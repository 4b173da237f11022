//! The meaning of a knob's or a condition's state for measurements.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Meaning of a state for measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum NoiseVerdict {
    /// It adds no noise.
    NoNoise,
    /// It adds noise.
    Noisy,
    /// It may add noise.
    Unknown {
        /// What it depends on.
        reason: String,
    },
    /// It cannot be determined here.
    Unsupported {
        /// The reason.
        reason: String,
    },
}

impl NoiseVerdict {
    pub fn word(&self) -> &'static str {
        match self {
            Self::NoNoise => "no-noise",
            Self::Noisy => "noisy",
            Self::Unknown { .. } => "unknown",
            Self::Unsupported { .. } => "unsupported",
        }
    }
}
