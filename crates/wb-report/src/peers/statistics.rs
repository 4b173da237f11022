//! The suites' statistics of a box plot.

use wb_stats::{Samples, Summary, outliers};

/// Statistics of a box plot: quartiles by linear interpolation, whiskers at the last samples within 1.5 interquartile
/// ranges of them, and the samples beyond.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxStatistics {
    /// The suites' `min`.
    pub low_whisker: f64,
    pub q1: f64,
    pub median: f64,
    pub q3: f64,
    /// The suites' `max`.
    pub high_whisker: f64,
    /// The samples beyond the whiskers, ascending.
    pub outliers: Vec<f64>,
}

impl BoxStatistics {
    pub fn new(samples: &Samples) -> Self {
        let fences = outliers(samples);
        let is_within = |value: &f64| (fences.low_fence..=fences.high_fence).contains(value);
        let (q1, median, q3) = (samples.quantile(0.25), samples.median(), samples.quantile(0.75));
        let (within, outliers): (Vec<f64>, Vec<f64>) = samples.sorted().iter().partition(|value| is_within(value));
        // The samples at the quartiles are always within the fences.
        let low_whisker = within.first().copied().unwrap_or(q1);
        let high_whisker = within.last().copied().unwrap_or(q3);
        Self { low_whisker, q1, median, q3, high_whisker, outliers }
    }

    /// A summary to draw: whiskers and quartiles of iterations, and the median of the samples with its interval.
    pub(super) fn drawn(&self, samples: &Samples) -> Summary {
        Summary { min: self.low_whisker, q1: self.q1, q3: self.q3, max: self.high_whisker, ..Summary::new(samples) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whiskers_are_the_last_samples_within_the_fences() {
        let samples = Samples::new(&[3.0, 1.0, 2.0, 4.0, 5.0, 20.0]).unwrap();
        let statistics = BoxStatistics::new(&samples);
        assert_eq!((statistics.q1, statistics.median, statistics.q3), (2.25, 3.5, 4.75));
        assert_eq!((statistics.low_whisker, statistics.high_whisker), (1.0, 5.0));
        assert_eq!(statistics.outliers, [20.0]);
    }

    #[test]
    fn a_single_sample_is_all_of_its_statistics() {
        let statistics = BoxStatistics::new(&Samples::new(&[7.0]).unwrap());
        assert_eq!((statistics.low_whisker, statistics.q1, statistics.high_whisker), (7.0, 7.0, 7.0));
        assert!(statistics.outliers.is_empty());
    }
}
