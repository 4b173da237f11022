//! Which differences matter.

use std::str::FromStr;

use wb_stats::{CONFIDENCE, RunNoise};

/// Which differences matter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// Those of more than so many percent.
    Percent(f64),
    /// Those beyond what two single runs of one build show, as a model of their noise says; see [`Threshold::of`].
    FromNoise,
}

/// Where nothing is said, in percent.
const DEFAULT_PERCENT: f64 = 5.0;

/// Less than so many percent never matters, however quiet a metric is.
const MIN_PERCENT: f64 = 1.0;

impl Default for Threshold {
    fn default() -> Self {
        Self::Percent(DEFAULT_PERCENT)
    }
}

impl Threshold {
    /// For a metric, in percent. Of noise it is what 95 % of the pairs of single runs of one build stay within, but 1 % at
    /// least; where the noise is not known, or not well enough, 5 %.
    pub fn of(self, noise: Option<&RunNoise>) -> f64 {
        match (self, noise) {
            (Self::Percent(percent), _) => percent,
            (Self::FromNoise, Some(noise)) => ((noise.repeatability_limit(CONFIDENCE) - 1.0) * 100.0).max(MIN_PERCENT),
            (Self::FromNoise, None) => DEFAULT_PERCENT,
        }
    }
}

/// Text that is no threshold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a number of zero or more, in percent, or `model` is expected")]
pub struct ParseThresholdError;

impl FromStr for Threshold {
    type Err = ParseThresholdError;

    fn from_str(text: &str) -> Result<Self, ParseThresholdError> {
        match text.parse::<f64>() {
            _ if text == "model" => Ok(Self::FromNoise),
            Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(Self::Percent(percent)),
            _ => Err(ParseThresholdError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noisy_metric_has_a_wide_threshold_and_a_quiet_one_a_percent() {
        let noise = |spread| RunNoise { stddev: spread, sampling: 0.0, within: None, degrees: 9.0 };
        assert!((Threshold::FromNoise.of(Some(&noise(0.02))) - 9.02).abs() < 0.05);
        assert_eq!(Threshold::FromNoise.of(Some(&noise(0.0001))), 1.0);
        assert_eq!((Threshold::FromNoise.of(None), Threshold::Percent(2.0).of(Some(&noise(0.02)))), (5.0, 2.0));
    }

    #[test]
    fn a_threshold_is_a_number_or_the_models() {
        assert_eq!("model".parse(), Ok(Threshold::FromNoise));
        assert_eq!("2.5".parse(), Ok(Threshold::Percent(2.5)));
        for bad in ["", "-1", "nan", "inf", "models"] {
            assert_eq!(bad.parse::<Threshold>(), Err(ParseThresholdError), "{bad}");
        }
    }
}
