//! Latency histograms, and fio's bins.
//!
//! fio counts latencies in groups of 64 bins: the first two groups are exact, and in each further group the bins are
//! twice as wide as in the previous one (`FIO_IO_U_PLAT_BITS` = 6, 29 groups, in nanoseconds since fio 3.0).

use std::collections::BTreeMap;

const BITS: u32 = 6;

pub const BINS: usize = 29 << BITS;

/// Lower bound of a bin in nanoseconds.
fn lower_bound(bin: usize) -> u64 {
    let (group, within) = (bin >> BITS, bin as u64 & ((1 << BITS) - 1));
    match group {
        0 | 1 => bin as u64,
        _ => ((1 << BITS) + within) << (group - 1),
    }
}

/// Midpoint, in nanoseconds, of a bin of a row of `count` bins. None if fio writes no rows of that length; a coarser
/// row joins adjacent bins.
pub fn midpoint(bin: usize, count: usize) -> Option<u64> {
    let is_supported = count > 0 && BINS.is_multiple_of(count) && (BINS / count).is_power_of_two();
    if !is_supported || bin >= count {
        return None;
    }
    let joined = BINS / count;
    Some(lower_bound(bin * joined).midpoint(lower_bound((bin + 1) * joined)))
}

/// Operation counts by latency in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram(BTreeMap<u64, u64>);

impl Histogram {
    pub fn add(&mut self, latency: u64, count: u64) {
        let slot = self.0.entry(latency).or_default();
        *slot = slot.saturating_add(count);
    }

    /// Adds counts: (latency, operations).
    pub fn merge(&mut self, counts: impl IntoIterator<Item = (u64, u64)>) {
        counts.into_iter().for_each(|(latency, count)| self.add(latency, count));
    }

    pub fn count(&self) -> u64 {
        self.0.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Percentile by nearest rank; none if the histogram is empty.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = ((percent / 100.0 * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        let reached = self.0.iter().find(|(_, count)| {
            seen = seen.saturating_add(**count);
            seen >= rank
        });
        reached.or(self.0.last_key_value()).map(|(latency, _)| *latency)
    }

    /// Converts into (latency, count) in ascending order of latency.
    pub fn into_counts(self) -> Vec<(u64, u64)> {
        self.0.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bins_are_those_that_fio_prints() {
        // From json+ output and the log of the same run of fio 3.33.
        let printed = [764, 788, 892, 956, 18304, 83456, 152_576, 3_850_240, 11_599_872];
        let middles: Vec<u64> = (0..BINS).map(|bin| midpoint(bin, BINS).unwrap()).collect();
        for latency in printed {
            assert!(middles.contains(&latency), "{latency}");
        }
        assert_eq!([midpoint(0, BINS), midpoint(127, BINS), midpoint(128, BINS)], [Some(0), Some(127), Some(129)]);
        assert!(middles.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_coarser_row_joins_bins() {
        assert_eq!(midpoint(0, BINS / 4), Some(2));
        assert_eq!(midpoint(5, BINS / 64), Some((lower_bound(320) + lower_bound(384)) / 2));
        assert_eq!([midpoint(0, 1216), midpoint(0, 0), midpoint(BINS, BINS)], [None, None, None]);
    }

    #[test]
    fn percentiles_use_the_nearest_rank() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50.0), None);
        histogram.merge([(10, 50), (20, 49), (30, 1)]);
        let at = |percent| histogram.percentile(percent).unwrap();
        assert_eq!([at(0.0), at(50.0), at(51.0), at(99.0), at(99.9), at(100.0)], [10, 10, 20, 20, 30, 30]);
    }

    proptest! {
        #[test]
        fn every_latency_lies_in_its_bin(latency in 0u64..(1 << 33)) {
            // The inverse: the leading bit chooses the group, the six bits below it the bin.
            let group = (63 - (latency | 1).leading_zeros()).saturating_sub(BITS);
            let bin = if latency < 128 { latency as usize } else {
                ((group as usize + 1) << BITS) + ((latency >> group) as usize & 63)
            };
            prop_assert!(lower_bound(bin) <= latency && latency < lower_bound(bin + 1));
            let middle = midpoint(bin, BINS).unwrap();
            prop_assert!(middle.abs_diff(latency) as f64 <= latency as f64 / 128.0 + 1.0);
        }
    }
}
