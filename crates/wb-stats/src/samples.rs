use thiserror::Error;

/// One or more finite values, in time order and sorted
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    in_order: Vec<f64>,
    sorted: Vec<f64>,
}

/// Why values are not valid [`Samples`]
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SampleError {
    #[error("no samples")]
    Empty,
    #[error("invalid sample {index}: {value} is not a finite number")]
    NotFinite {
        /// Position in time order, from 0
        index: usize,
        value: f64,
    },
    /// The square of a value would overflow; no measured quantity comes close
    #[error("invalid sample {index}: {value:e} is beyond ±1e150")]
    TooLarge {
        /// Position in time order, from 0
        index: usize,
        value: f64,
    },
}

impl Samples {
    /// Validates and sorts values, which are in time order
    pub fn new(in_order: &[f64]) -> Result<Self, SampleError> {
        if in_order.is_empty() {
            return Err(SampleError::Empty);
        }
        validate_samples(in_order)?;
        let mut sorted = in_order.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(Self { in_order: in_order.to_vec(), sorted })
    }

    /// The number of samples; never 0
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The samples in time order
    pub fn in_order(&self) -> &[f64] {
        &self.in_order
    }

    /// The samples in ascending order
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// The smallest sample
    pub fn min(&self) -> f64 {
        self.sorted[0]
    }

    /// The largest sample
    pub fn max(&self) -> f64 {
        self.sorted[self.count() - 1]
    }

    /// The arithmetic mean
    pub fn mean(&self) -> f64 {
        let mean = self.sorted.iter().sum::<f64>() / self.count() as f64;
        mean.clamp(self.min(), self.max())
    }

    /// The sample standard deviation (n − 1); `None` for a single sample.
    ///
    /// Two passes with the correction for the rounding of the mean (Chan, Golub, LeVeque 1983, eq. 1.7).
    pub fn stddev(&self) -> Option<f64> {
        let n = self.count() as f64;
        let mean = self.mean();
        let (squares, rest) =
            self.sorted.iter().map(|x| x - mean).fold((0.0, 0.0), |(squares, rest), d| (squares + d * d, rest + d));
        (n > 1.0).then(|| ((squares - rest * rest / n).max(0.0) / (n - 1.0)).sqrt())
    }

    /// The median
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The sample quantile `p`, clamped to 0..=1: linear between the order statistics at (n − 1)p
    /// (Hyndman, Fan 1996, type 7; the default of R and NumPy).
    pub fn quantile(&self, p: f64) -> f64 {
        let last = self.count() - 1;
        let p = if p > 0.0 { p.min(1.0) } else { 0.0 };
        let position = p * last as f64;
        let below = position.floor() as usize;
        let (low, high) = (self.sorted[below], self.sorted[(below + 1).min(last)]);
        (low + (position - below as f64) * (high - low)).clamp(low, high)
    }

    /// The median absolute deviation from the median, unscaled; times 1.4826 it estimates the standard deviation of a
    /// normal population (Hampel 1974)
    pub fn mad(&self) -> f64 {
        let median = self.median();
        let mut deviations: Vec<f64> = self.sorted.iter().map(|x| (x - median).abs()).collect();
        deviations.sort_unstable_by(f64::total_cmp);
        Self { in_order: Vec::new(), sorted: deviations }.median()
    }
}

/// Returns an error if a value cannot be a sample
pub(crate) fn validate_samples(values: &[f64]) -> Result<(), SampleError> {
    for (index, &value) in values.iter().enumerate() {
        if !value.is_finite() {
            return Err(SampleError::NotFinite { index, value });
        }
        if value.abs() > 1e150 {
            return Err(SampleError::TooLarge { index, value });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_value_is_refused_with_its_position() {
        assert_eq!(Samples::new(&[]), Err(SampleError::Empty));
        assert!(matches!(Samples::new(&[1.0, f64::NAN]), Err(SampleError::NotFinite { index: 1, .. })));
        let infinite = Samples::new(&[1.0, 2.0, f64::INFINITY]).unwrap_err();
        assert_eq!(infinite.to_string(), "invalid sample 2: inf is not a finite number");
        let large = Samples::new(&[-2e150]).unwrap_err();
        assert_eq!(large.to_string(), "invalid sample 0: -2e150 is beyond ±1e150");
    }

    #[test]
    fn the_largest_samples_do_not_overflow() {
        let samples = Samples::new(&[1e150, -1e150, 1e150]).unwrap();
        assert!(samples.mean().is_finite());
        assert!(samples.stddev().unwrap().is_finite());
        assert!(samples.mad().is_finite());
    }

    #[test]
    fn a_quantile_outside_its_range_is_the_nearest_end() {
        let samples = Samples::new(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!(samples.quantile(-1.0), 1.0);
        assert_eq!(samples.quantile(7.0), 3.0);
        assert_eq!(samples.quantile(f64::NAN), 1.0);
    }
}
