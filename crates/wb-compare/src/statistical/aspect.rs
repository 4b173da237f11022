//! What of two distributions is compared.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Direction;
use wb_stats::tail_level;

/// What of two distributions is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// The factor by which all samples differ: the median of the ratios of all pairs of samples (Hodges and Lehmann).
    Shift,
    /// The ratio of means.
    Mean,
    /// The ratio of the quantiles that the worst quarter of the samples is beyond; from 13 samples a side on.
    WorstQuarter,
    /// The ratio of the quantiles that the worst tenth of the samples is beyond; from 36 samples a side on.
    WorstTenth,
    /// The shift of the 99 % quantile of the operations' latencies, of which every sample has one.
    P99,
}

impl Aspect {
    /// The tail that this number of samples on the smaller side permits; `None` with too few, or if neither direction is
    /// worse.
    pub(super) fn tail(samples: usize, direction: Direction) -> Option<Self> {
        match tail_level(samples)? {
            _ if direction == Direction::Neither => None,
            level if level > 0.8 => Some(Self::WorstTenth),
            _ => Some(Self::WorstQuarter),
        }
    }

    /// The quantile of the samples that a tail begins at.
    pub(super) fn quantile(self, direction: Direction) -> Option<f64> {
        let upper = match self {
            Self::WorstQuarter => 0.75,
            Self::WorstTenth => 0.9,
            Self::Shift | Self::Mean | Self::P99 => return None,
        };
        Some(if direction == Direction::Higher { 1.0 - upper } else { upper })
    }

    /// The text shown to users.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shift => "shift",
            Self::Mean => "mean",
            Self::WorstQuarter => "worst quarter",
            Self::WorstTenth => "worst tenth",
            Self::P99 => "p99 latency",
        }
    }
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_on_the_worse_side() {
        let quantile =
            |samples, direction| Aspect::tail(samples, direction).and_then(|aspect| aspect.quantile(direction));
        assert_eq!(quantile(12, Direction::Lower), None);
        assert_eq!(quantile(13, Direction::Lower), Some(0.75));
        assert_eq!(quantile(13, Direction::Higher), Some(0.25));
        assert_eq!(quantile(36, Direction::Lower), Some(0.9));
        assert_eq!(quantile(100, Direction::Neither), None);
    }
}
