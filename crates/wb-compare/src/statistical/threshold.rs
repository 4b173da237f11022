//! The smallest relevant difference.

use std::str::FromStr;

use wb_model::MAX_THRESHOLD_PERCENT;
use wb_stats::{CONFIDENCE, RunModes, RunNoise};

/// The smallest relevant difference.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Threshold {
    /// The threshold of the runs' plans; 5 % for metrics without one.
    #[default]
    FromPlans,
    Percent(f64),
    /// The difference that two single runs of one build may show, according to a noise model; see [`Threshold::of`].
    FromNoise,
}

pub const DEFAULT_PERCENT: f64 = 5.0;

/// The minimum in percent, however quiet a metric is.
const MIN_PERCENT: f64 = 1.0;

impl Threshold {
    /// The threshold of a metric, in percent. From noise it is what 95 % of the pairs of single runs of one build stay
    /// within, but at least 1 %; if the noise is unknown or uncertain, 5 %. `planned` is that of the plans.
    ///
    /// Of runs in two modes it is what pairs of one mode stay within. With the distance of the modes as threshold, no
    /// number of runs could show a smaller change. How certain a difference is depends on the noise of all runs, so
    /// that one between the modes alone is not confirmed.
    pub fn of(self, noise: Option<&RunNoise>, two_modes: Option<&RunModes>, planned: Option<f64>) -> f64 {
        let percent = |limit: f64| ((limit - 1.0) * 100.0).max(MIN_PERCENT);
        match (self, noise, two_modes) {
            (Self::FromPlans, ..) => planned.unwrap_or(DEFAULT_PERCENT),
            (Self::Percent(percent), ..) => percent,
            (Self::FromNoise, Some(_), Some(modes)) => percent(modes.repeatability_limit(CONFIDENCE)),
            (Self::FromNoise, Some(noise), None) => percent(noise.repeatability_limit(CONFIDENCE)),
            (Self::FromNoise, None, _) => DEFAULT_PERCENT,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a percentage from 0 to {MAX_THRESHOLD_PERCENT}, or `model`")]
pub struct ParseThresholdError;

impl FromStr for Threshold {
    type Err = ParseThresholdError;

    fn from_str(text: &str) -> Result<Self, ParseThresholdError> {
        match text.parse::<f64>() {
            _ if text == "model" => Ok(Self::FromNoise),
            Ok(percent) if (0.0..=MAX_THRESHOLD_PERCENT).contains(&percent) => Ok(Self::Percent(percent)),
            _ => Err(ParseThresholdError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_follows_the_noise_and_is_at_least_one_percent() {
        let noise = |spread| RunNoise { stddev: spread, sampling: 0.0, within: None, degrees: 9.0 };
        assert!((Threshold::FromNoise.of(Some(&noise(0.02)), None, Some(3.0)) - 9.02).abs() < 0.05);
        assert_eq!(Threshold::FromNoise.of(Some(&noise(0.0001)), None, None), 1.0);
        let percent = Threshold::Percent(2.0).of(Some(&noise(0.02)), None, Some(3.0));
        assert_eq!((Threshold::FromNoise.of(None, None, Some(3.0)), percent), (5.0, 2.0));
    }

    // The spread of runs in two modes exceeds their distance, so that every smaller loss was equal.
    #[test]
    fn of_two_modes_the_threshold_is_that_of_one() {
        let noise = RunNoise { stddev: 0.15, sampling: 0.0, within: None, degrees: 9.0 };
        let modes = RunModes { apart: 0.26, stddev: 0.01, degrees: 8.0 };
        let of = |modes| Threshold::FromNoise.of(Some(&noise), modes, None);
        assert!(of(None) > 90.0 && (4.0..5.0).contains(&of(Some(&modes))), "{}", of(Some(&modes)));
        assert_eq!(Threshold::Percent(2.0).of(Some(&noise), Some(&modes), None), 2.0);
    }

    #[test]
    fn a_plan_has_the_threshold_unless_another_is_given() {
        assert_eq!(
            [Some(3.0), Some(0.0), None].map(|planned| Threshold::default().of(None, None, planned)),
            [3.0, 0.0, 5.0]
        );
    }

    #[test]
    fn a_threshold_is_a_number_or_from_the_model() {
        assert_eq!("model".parse(), Ok(Threshold::FromNoise));
        assert_eq!("2.5".parse(), Ok(Threshold::Percent(2.5)));
        for bad in ["", "-1", "nan", "inf", "1001", "models"] {
            assert_eq!(bad.parse::<Threshold>(), Err(ParseThresholdError), "{bad}");
        }
    }
}
