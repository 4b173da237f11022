//! The aspects of two distributions that are compared.

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
    /// The ratio of the 10 % quantiles, where more is better; from 36 samples a side on.
    #[serde(rename = "quantile-10")]
    Quantile10,
    /// The ratio of the 25 % quantiles, where more is better; from 13 samples a side on.
    #[serde(rename = "quantile-25")]
    Quantile25,
    /// The ratio of the 75 % quantiles, where less is better; from 13 samples a side on.
    #[serde(rename = "quantile-75")]
    Quantile75,
    /// The ratio of the 90 % quantiles, where less is better; from 36 samples a side on.
    #[serde(rename = "quantile-90")]
    Quantile90,
    /// The shift of the 99 % quantile of the operations' latencies, of which every sample has one.
    P99,
}

impl Aspect {
    /// The tail that `samples` on the smaller side permit; `None` with too few, or if neither direction is worse.
    pub(super) fn tail(samples: usize, direction: Direction) -> Option<Self> {
        match (direction, tail_level(samples)? > 0.8) {
            (Direction::Neither, _) => None,
            (Direction::Higher, true) => Some(Self::Quantile10),
            (Direction::Higher, false) => Some(Self::Quantile25),
            (Direction::Lower, true) => Some(Self::Quantile90),
            (Direction::Lower, false) => Some(Self::Quantile75),
        }
    }

    pub(super) fn quantile(self) -> Option<f64> {
        match self {
            Self::Quantile10 => Some(0.1),
            Self::Quantile25 => Some(0.25),
            Self::Quantile75 => Some(0.75),
            Self::Quantile90 => Some(0.9),
            Self::Shift | Self::Mean | Self::P99 => None,
        }
    }

    /// The text shown to users.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shift => "shift",
            Self::Mean => "mean",
            Self::Quantile10 => "10 % quantile",
            Self::Quantile25 => "25 % quantile",
            Self::Quantile75 => "75 % quantile",
            Self::Quantile90 => "90 % quantile",
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
        let quantile = |samples, direction| Aspect::tail(samples, direction).and_then(Aspect::quantile);
        assert_eq!(quantile(12, Direction::Lower), None);
        assert_eq!(quantile(13, Direction::Lower), Some(0.75));
        assert_eq!(quantile(13, Direction::Higher), Some(0.25));
        assert_eq!(quantile(36, Direction::Lower), Some(0.9));
        assert_eq!(quantile(36, Direction::Higher), Some(0.1));
        assert_eq!(quantile(100, Direction::Neither), None);
    }
}
