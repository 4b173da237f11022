//! The use of noise models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::RunModes;

/// Whether and how a noise model was used for a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum NoiseModelUse {
    /// The interval includes the noise between runs, as estimated by a model.
    Applied {
        /// The spread of runs, including the noise of their samples, as a fraction.
        spread: f64,
        /// The number of runs behind the estimate.
        runs: usize,
        /// The two modes that they are in, if there are.
        #[serde(default)]
        two_modes: Option<RunModes>,
    },
    /// The model has insufficient data for the metric.
    Insufficient {
        /// The reason.
        why: String,
    },
    /// The models have other definitions of the metric only.
    OtherDefinition,
    /// No model has the metric.
    Unknown,
}

impl NoiseModelUse {
    pub fn two_modes(&self) -> Option<&RunModes> {
        match self {
            Self::Applied { two_modes, .. } => two_modes.as_ref(),
            _ => None,
        }
    }
}
