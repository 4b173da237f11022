//! Latency histograms for the measured path: a few instructions per value, and no allocation.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::clock::Nanos;

/// The longest distinguishable latency: an hour.
const MAX_TIME: Nanos = 3_600_000_000_000;

/// A histogram of latencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyHistogram {
    /// The sum, in nanoseconds.
    pub sum: u64,
    /// The shortest in nanoseconds; `u64::MAX` if the histogram is empty.
    pub min: Nanos,
    /// The longest in nanoseconds.
    pub max: Nanos,
    /// Count per bucket, to a number of significant digits.
    #[serde(with = "super::hdr")]
    counts: Buckets,
}

impl LatencyHistogram {
    /// Creates an empty histogram with this many significant digits.
    pub fn new(digits: u8) -> Self {
        Self { sum: 0, min: Nanos::MAX, max: 0, counts: Buckets::new(digits) }
    }

    #[inline]
    pub(crate) fn record(&mut self, nanos: Nanos) {
        self.record_many(nanos, 1);
    }

    /// Records the same value several times.
    #[inline]
    pub(crate) fn record_many(&mut self, nanos: Nanos, times: u64) {
        self.sum += nanos * times;
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.counts.add(nanos, times as u32);
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.counts.merge(&other.counts);
    }

    /// The number of recorded values.
    pub fn count(&self) -> u64 {
        self.counts.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Converts to an HdrHistogram.
    pub fn to_hdr(&self) -> Histogram<u32> {
        self.counts.to_hdr()
    }
}

/// Counts per latency, in the buckets of an HdrHistogram (Tene) from 1 ns to an hour: powers of two, each divided
/// linearly, finely enough for the given number of significant digits. It differs from the library's type only by the
/// statistics that the library updates with each value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Buckets {
    digits: u8,
    /// The first range spans two to the power of this many values, and every further one half as many buckets.
    width_bits: u32,
    counts: Box<[u32]>,
}

impl Buckets {
    fn new(digits: u8) -> Self {
        let width = 2 * 10_u64.pow(digits.into());
        let width_bits = width.next_power_of_two().trailing_zeros();
        let mut counts = Self { digits, width_bits, counts: Box::default() };
        counts.counts = vec![0; counts.bucket_index(MAX_TIME) + 1].into_boxed_slice();
        counts
    }

    /// The bucket of a latency.
    #[inline]
    fn bucket_index(&self, nanos: Nanos) -> usize {
        let first = (1 << self.width_bits) - 1;
        // Number of lowest bits that are not distinguished.
        let shift = (u64::BITS - (nanos | first).leading_zeros()) - self.width_bits;
        ((shift as usize) << (self.width_bits - 1)) + (nanos >> shift) as usize
    }

    /// The shortest latency in a bucket.
    fn bucket_start(&self, index: usize) -> Nanos {
        let half = self.width_bits - 1;
        let shift = (index >> half).saturating_sub(1);
        ((index - (shift << half)) as Nanos) << shift
    }

    #[inline]
    fn add(&mut self, nanos: Nanos, times: u32) {
        let index = self.bucket_index(nanos.min(MAX_TIME));
        if let Some(count) = self.counts.get_mut(index) {
            *count = count.saturating_add(times);
        }
    }

    fn merge(&mut self, other: &Self) {
        if self.digits == other.digits {
            for (count, other_count) in self.counts.iter_mut().zip(&other.counts) {
                *count = count.saturating_add(*other_count);
            }
        } else {
            other.iter_recorded().for_each(|(time, count)| self.add(time, count));
        }
    }

    /// The latencies with a non-zero count, and their counts.
    fn iter_recorded(&self) -> impl Iterator<Item = (Nanos, u32)> {
        let buckets = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        buckets.map(|(index, &count)| (self.bucket_start(index), count))
    }

    pub(super) fn to_hdr(&self) -> Histogram<u32> {
        let mut histogram =
            Histogram::new_with_bounds(1, MAX_TIME, self.digits).expect("one to an hour are bounds of a histogram");
        self.iter_recorded().for_each(|(time, count)| histogram.saturating_record_n(time, count));
        histogram
    }
}

impl From<&Histogram<u32>> for Buckets {
    fn from(histogram: &Histogram<u32>) -> Self {
        let mut counts = Self::new(histogram.sigfig());
        histogram.iter_recorded().for_each(|time| {
            counts.add(histogram.lowest_equivalent(time.value_iterated_to()), time.count_at_value());
        });
        counts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

        #[test]
        fn a_latency_lies_within_its_bucket(nanos in 0_u64..=MAX_TIME, digits in 0_u8..4) {
            let counts = Buckets::new(digits);
            let index = counts.bucket_index(nanos);
            let (start, next) = (counts.bucket_start(index), counts.bucket_start(index + 1));
            prop_assert!(start <= nanos && nanos < next, "{} <= {} < {}", start, nanos, next);
            prop_assert!((next - start - 1) as f64 <= nanos as f64 / 10_f64.powi(digits.into()));
        }
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
