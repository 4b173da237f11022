//! How long things took, as the measured path notes it: a few instructions for each, and no allocation.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::clock::Nanos;

/// The longest time that is told from longer ones: an hour.
const MAX_TIME: Nanos = 3_600_000_000_000;

/// How long things took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyHistogram {
    /// Together, in nanoseconds.
    pub sum: u64,
    /// The shortest in nanoseconds; `u64::MAX` if there is none.
    pub min: Nanos,
    /// The longest.
    pub max: Nanos,
    /// How often each, to so many significant digits.
    #[serde(with = "super::hdr")]
    counts: Buckets,
}

impl LatencyHistogram {
    /// None yet, kept to so many significant digits.
    pub fn new(digits: u8) -> Self {
        Self { sum: 0, min: Nanos::MAX, max: 0, counts: Buckets::new(digits) }
    }

    #[inline]
    pub(crate) fn record(&mut self, nanos: Nanos) {
        self.record_many(nanos, 1);
    }

    /// So many times the same.
    #[inline]
    pub(crate) fn record_many(&mut self, nanos: Nanos, times: u64) {
        self.sum += nanos * times;
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.counts.add(nanos, times as u32);
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.counts.merge(&other.counts);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.counts.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// How often each was taken.
    pub fn to_hdr(&self) -> Histogram<u32> {
        self.counts.to_hdr()
    }
}

/// How often each time was taken, in the buckets of an HdrHistogram (Tene) from 1 ns to an hour: powers of two, each
/// divided alike, so finely that so many significant digits are kept. It is one of those but for the books that the
/// library keeps with each value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Buckets {
    digits: u8,
    /// The first bucket is two to the power of this wide, and all others half of it.
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

    /// Where a time is counted.
    #[inline]
    fn bucket_index(&self, nanos: Nanos) -> usize {
        let first = (1 << self.width_bits) - 1;
        // How many of the lowest bits are not told apart.
        let blur = (u64::BITS - (nanos | first).leading_zeros()) - self.width_bits;
        ((blur as usize) << (self.width_bits - 1)) + (nanos >> blur) as usize
    }

    /// The shortest of the times that are counted at a place.
    fn bucket_start(&self, place: usize) -> Nanos {
        let half = self.width_bits - 1;
        let blur = (place >> half).saturating_sub(1);
        ((place - (blur << half)) as Nanos) << blur
    }

    #[inline]
    fn add(&mut self, nanos: Nanos, times: u32) {
        let place = self.bucket_index(nanos.min(MAX_TIME));
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.saturating_add(times);
        }
    }

    fn merge(&mut self, other: &Self) {
        if self.digits == other.digits {
            for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
                *mine = mine.saturating_add(*theirs);
            }
        } else {
            other.iter_recorded().for_each(|(time, count)| self.add(time, count));
        }
    }

    /// Times and how often each was taken, those alone that were.
    fn iter_recorded(&self) -> impl Iterator<Item = (Nanos, u32)> {
        let places = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        places.map(|(place, &count)| (self.bucket_start(place), count))
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
        fn what_is_counted_is_what_an_hdr_histogram_counts(
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
        fn a_time_is_counted_where_its_bucket_says(nanos in 0_u64..=MAX_TIME, digits in 0_u8..4) {
            let counts = Buckets::new(digits);
            let place = counts.bucket_index(nanos);
            let (here, next) = (counts.bucket_start(place), counts.bucket_start(place + 1));
            prop_assert!(here <= nanos && nanos < next, "{} <= {} < {}", here, nanos, next);
            prop_assert!((next - here - 1) as f64 <= nanos as f64 / 10_f64.powi(digits.into()));
        }
    }

    #[test]
    fn the_shortest_and_the_longest_are_kept_as_they_were() {
        let mut times = LatencyHistogram::new(2);
        [1_234_567, 8_765_432].into_iter().for_each(|time| times.record(time));
        let mut other = LatencyHistogram::new(3);
        other.record(9_876_543);
        times.merge(&other);
        assert_eq!((times.min, times.max, times.count()), (1_234_567, 9_876_543, 3));
    }
}
