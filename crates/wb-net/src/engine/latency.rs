//! Latency histograms for the measured path: a few instructions per value, and no allocation.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::buckets::Buckets;
use super::clock::Nanos;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyHistogram {
    /// The sum, in nanoseconds.
    pub sum: u64,
    /// The shortest in nanoseconds; `u64::MAX` if the histogram is empty.
    pub min: Nanos,
    pub max: Nanos,
    #[serde(with = "super::hdr")]
    counts: Buckets,
}

impl LatencyHistogram {
    pub fn new(digits: u8) -> Self {
        Self { sum: 0, min: Nanos::MAX, max: 0, counts: Buckets::new(digits) }
    }

    #[inline]
    pub(crate) fn record(&mut self, nanos: Nanos) {
        self.record_many(nanos, 1);
    }

    #[inline]
    pub(crate) fn record_many(&mut self, nanos: Nanos, times: u64) {
        self.sum += nanos * times;
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.counts.add(nanos, times as u32);
    }

    /// Records `count` values: `first`, and each further one `period` nanoseconds longer than the one before.
    pub(crate) fn record_series(&mut self, first: Nanos, period: f64, count: u64) {
        let Some(last) = count.checked_sub(1) else { return };
        self.min = self.min.min(first);
        self.max = self.max.max(first + (last as f64 * period) as Nanos);
        let sum = count as f64 * (first as f64 + period * last as f64 / 2.0);
        // A rate that nothing reaches may have more rounds due than a sum can hold.
        self.sum = self.sum.saturating_add(sum as u64);
        self.counts.add_series(first, period, count);
    }

    pub(crate) fn empty_like(&self) -> Self {
        Self::new(self.counts.digits())
    }

    pub fn merge(&mut self, other: &Self) {
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.counts.merge(&other.counts);
    }

    pub fn count(&self) -> u64 {
        self.counts.total()
    }

    pub fn to_hdr(&self) -> Histogram<u32> {
        self.counts.to_hdr()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::buckets::MAX_TIME;
    use super::*;

    proptest! {
        #[test]
        fn counts_equal_those_of_an_hdr_histogram(
            values in prop::collection::vec(0..=MAX_TIME, 1..200), digits in 1_u8..4
        ) {
            let mut times = LatencyHistogram::new(digits);
            let mut histogram = Histogram::<u32>::new_with_bounds(1, MAX_TIME, digits).expect("bounds");
            for &value in &values {
                // So that short times are as frequent as long ones.
                let value = value >> (value % 43);
                times.record(value);
                histogram.saturating_record(value);
            }
            prop_assert_eq!(times.to_hdr(), histogram.clone());
            prop_assert_eq!(times.count(), values.len() as u64);
            prop_assert_eq!(Buckets::from(&histogram), times.counts);
        }
    }

    proptest! {
        #[test]
        fn a_series_is_recorded_like_its_values(
            first in 0..MAX_TIME, period in 1.0..1e9_f64, count in 0_u64..300, shift in 0_u32..43
        ) {
            let first = first >> shift;
            let (mut series, mut single) = (LatencyHistogram::new(3), LatencyHistogram::new(3));
            series.record_series(first, period, count);
            (0..count).for_each(|number| single.record(first + (number as f64 * period) as Nanos));
            prop_assert_eq!(&series.counts, &single.counts);
            prop_assert_eq!((series.min, series.max), (single.min, single.max));
            prop_assert!(series.sum.abs_diff(single.sum) <= count + single.sum / 1_000_000_000);
        }
    }

    #[test]
    fn a_series_of_a_rate_that_nothing_reaches_is_recorded_at_once() {
        let mut histogram = LatencyHistogram::new(3);
        histogram.record_series(0, 1.0, 3_600_000_000_000);
        assert_eq!(histogram.max, 3_599_999_999_999);
        assert_eq!(histogram.sum, u64::MAX);
    }

    #[test]
    fn merging_preserves_the_exact_minimum_and_maximum() {
        let mut times = LatencyHistogram::new(2);
        [1_234_567, 8_765_432].into_iter().for_each(|time| times.record(time));
        let mut other = LatencyHistogram::new(3);
        other.record(9_876_543);
        times.merge(&other);
        assert_eq!((times.min, times.max, times.count()), (1_234_567, 9_876_543, 3));
    }
}
