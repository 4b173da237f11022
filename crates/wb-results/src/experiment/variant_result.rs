//! How a variant compares with the first one, and whether that needs more blocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::{ConfidenceInterval, FinalVerdict};

/// Whether another block is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoppingState {
    /// Another block is needed.
    Continue,
    /// Every variant has a verdict in every metric, and more blocks up to the maximum would not decide about failed attempts
    /// either, if those go on as so far.
    Decided,
    /// The maximum number of blocks is reached, and some variant has no verdict in some metric, or none about its failed
    /// attempts.
    AtLimit,
}

/// The comparison of a variant with the first variant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantResult {
    /// The number of evaluated blocks with a sample of the variant and of the first; `None` if an older version recorded
    /// the run.
    #[serde(default)]
    pub blocks: Option<usize>,
    /// The ratio of the variant to the first; `None` before the first block, and where it is infinite, since the samples of
    /// the first are zero, or so many of either side are zero that they have none.
    pub ratio: Option<f64>,
    /// The confidence interval of the ratio, valid for any stopping time; `None` with too few blocks, and if the ratio is 0
    /// or an end is infinite.
    pub interval: Option<ConfidenceInterval>,
    /// The smallest error rate at which the variant alone would have been declared different, at this or an earlier
    /// evaluation: valid for any stopping time, and 1 if it is above 0.5. `None` with too few blocks for an interval.
    #[serde(default)]
    pub p_value: Option<f64>,
    /// The p-value adjusted for all comparisons of the experiment (Benjamini and Hochberg), of which those whose ratio has
    /// never been beyond the threshold count as 1. A variant is better or worse if it is at most the error rate, and the
    /// ratio is beyond the threshold.
    #[serde(default)]
    pub adjusted_p_value: Option<f64>,
    /// How the variant compares with the first one.
    pub verdict: VariantVerdict,
}

/// How a variant compares with the first one. They are alternatives, of which none regressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VariantVerdict {
    /// Better by more than the threshold, of a throughput or a latency.
    Faster,
    /// Better by more than the threshold.
    Better,
    /// Worse by more than the threshold, of a throughput or a latency.
    Slower,
    /// Worse by more than the threshold.
    Worse,
    /// Different by more than the threshold, and neither direction is better.
    Differs,
    /// The difference is within the threshold.
    Equivalent,
    /// No verdict is justified yet.
    Inconclusive,
}

impl VariantVerdict {
    pub fn is_worse(self) -> bool {
        matches!(self, Self::Slower | Self::Worse)
    }
}

impl From<VariantVerdict> for FinalVerdict {
    fn from(verdict: VariantVerdict) -> Self {
        match verdict {
            VariantVerdict::Faster => Self::Faster,
            VariantVerdict::Better => Self::Better,
            VariantVerdict::Slower => Self::Slower,
            VariantVerdict::Worse => Self::Worse,
            VariantVerdict::Differs => Self::Differs,
            VariantVerdict::Equivalent => Self::Equivalent,
            VariantVerdict::Inconclusive => Self::Inconclusive,
        }
    }
}
