use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Interval, STOPPING_CONFIDENCE, Samples, median_interval, widened_median_interval};

/// Summary statistics of samples. All values are in the samples' unit unless their name says percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Number of samples
    pub n: usize,
    /// The smallest
    pub min: f64,
    /// The lower quartile (Hyndman and Fan's type 7)
    pub q1: f64,
    /// The median
    pub median: f64,
    /// The upper quartile
    pub q3: f64,
    /// The largest
    pub max: f64,
    /// The median absolute deviation from the median, not scaled
    pub mad: f64,
    /// The arithmetic mean
    pub mean: f64,
    /// The sample standard deviation; absent for one sample
    pub stddev: Option<f64>,
    /// The standard deviation in percent of the mean's magnitude; absent for one sample or a mean of 0
    pub stddev_percent: Option<f64>,
    /// The interval of the median at [`STOPPING_CONFIDENCE`], so that 95 % remains however the number of samples was
    /// determined, and widened if successive samples are similar; absent below 6 samples
    pub median_interval: Option<Interval>,
}

impl Summary {
    /// Summarizes samples in time order. The interval is the one by which sampling rules decide.
    pub fn new(samples: &Samples) -> Self {
        Self::with_interval(samples, widened_median_interval(samples, STOPPING_CONFIDENCE))
    }

    /// Summarizes samples that have no order in time, such as one of each of several systems or builds. The interval is
    /// not widened.
    pub fn of_unordered(samples: &Samples) -> Self {
        Self::with_interval(samples, median_interval(samples, STOPPING_CONFIDENCE))
    }

    fn with_interval(samples: &Samples, median_interval: Option<Interval>) -> Self {
        let (mean, stddev) = (samples.mean(), samples.stddev());
        Self {
            n: samples.count(),
            min: samples.min(),
            q1: samples.quantile(0.25),
            median: samples.median(),
            q3: samples.quantile(0.75),
            max: samples.max(),
            mad: samples.mad(),
            mean,
            stddev,
            stddev_percent: stddev.map(|stddev| stddev / mean.abs() * 100.0).filter(|percent| percent.is_finite()),
            median_interval,
        }
    }

    /// The half-width of the median's interval in percent of the median; see [`Interval::half_width_percent`]
    pub fn half_width_percent(&self) -> Option<f64> {
        self.median_interval?.half_width_percent(self.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sample_has_no_standard_deviation_and_no_interval() {
        let summary = Summary::new(&Samples::new(&[4.2]).unwrap());
        assert_eq!((summary.min, summary.median, summary.max, summary.mean), (4.2, 4.2, 4.2, 4.2));
        assert_eq!((summary.stddev, summary.stddev_percent, summary.median_interval), (None, None, None));
        assert_eq!(summary.mad, 0.0);
    }

    #[test]
    fn a_mean_of_zero_has_no_relative_standard_deviation() {
        let summary = Summary::new(&Samples::new(&[-1.0, 1.0]).unwrap());
        assert_eq!(summary.stddev_percent, None);
    }
}
