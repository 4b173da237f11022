//! Counts of latencies in buckets.

use hdrhistogram::Histogram;

use super::clock::Nanos;

/// The longest distinguishable latency: an hour.
pub(super) const MAX_TIME: Nanos = 3_600_000_000_000;

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
    pub(super) fn new(digits: u8) -> Self {
        let width = 2 * 10_u64.pow(digits.into());
        let width_bits = width.next_power_of_two().trailing_zeros();
        let mut counts = Self { digits, width_bits, counts: Box::default() };
        counts.counts = vec![0; counts.bucket_index(MAX_TIME) + 1].into_boxed_slice();
        counts
    }

    #[inline]
    fn bucket_index(&self, nanos: Nanos) -> usize {
        let first = (1 << self.width_bits) - 1;
        // Number of lowest bits that are not distinguished.
        let shift = (u64::BITS - (nanos | first).leading_zeros()) - self.width_bits;
        ((shift as usize) << (self.width_bits - 1)) + (nanos >> shift) as usize
    }

    fn bucket_start(&self, index: usize) -> Nanos {
        let half = self.width_bits - 1;
        let shift = (index >> half).saturating_sub(1);
        ((index - (shift << half)) as Nanos) << shift
    }

    #[inline]
    pub(super) fn add(&mut self, nanos: Nanos, times: u32) {
        let index = self.bucket_index(nanos.min(MAX_TIME));
        if let Some(count) = self.counts.get_mut(index) {
            *count = count.saturating_add(times);
        }
    }

    /// Adds `count` latencies: `first`, and each further one `period` nanoseconds longer. Takes a step per bucket.
    pub(super) fn add_series(&mut self, first: Nanos, period: f64, count: u64) {
        let mut number = 0;
        while number < count {
            let value = (first + (number as f64 * period) as Nanos).min(MAX_TIME);
            let next = self.bucket_start(self.bucket_index(value) + 1);
            let within = (next.saturating_sub(first) as f64 / period).ceil() as u64;
            let end = if value == MAX_TIME { count } else { within.clamp(number + 1, count) };
            self.add(value, u32::try_from(end - number).unwrap_or(u32::MAX));
            number = end;
        }
    }

    pub(super) fn digits(&self) -> u8 {
        self.digits
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if self.digits == other.digits {
            for (count, other_count) in self.counts.iter_mut().zip(&other.counts) {
                *count = count.saturating_add(*other_count);
            }
        } else {
            other.iter_recorded().for_each(|(time, count)| self.add(time, count));
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

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
        fn a_latency_lies_within_its_bucket(nanos in 0_u64..=MAX_TIME, digits in 0_u8..4) {
            let counts = Buckets::new(digits);
            let index = counts.bucket_index(nanos);
            let (start, next) = (counts.bucket_start(index), counts.bucket_start(index + 1));
            prop_assert!(start <= nanos && nanos < next, "{} <= {} < {}", start, nanos, next);
            prop_assert!((next - start - 1) as f64 <= nanos as f64 / 10_f64.powi(digits.into()));
        }
    }
}
