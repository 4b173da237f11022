//! Histograms of latencies as the kernel's triggers count them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Numbers of requests by the midpoint of their bucket, in microseconds. The buckets are 10 µs wide up to 1 ms, 1 ms up
/// to 100 ms, and 100 ms beyond, as in the tables of resctl-bench
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct LatencyHistogram(BTreeMap<u64, u64>);

/// Widths of buckets in microseconds, each with the latency up to which it is used.
pub(super) const BUCKETS: [(u64, Option<u64>); 3] = [(10, Some(1000)), (1000, Some(100_000)), (100_000, None)];

impl FromIterator<(u64, u64)> for LatencyHistogram {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(counts: I) -> Self {
        let mut histogram = Self::default();
        counts.into_iter().for_each(|(latency, count)| histogram.add(latency, count));
        histogram
    }
}

impl LatencyHistogram {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// Latencies in microseconds, ascending, with their numbers of requests.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(latency, count)| (*latency, *count))
    }

    /// Percentile by nearest rank, in microseconds; `None` without requests.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = ((percent / 100.0 * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let reached = self.0.iter().find(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        reached.or(self.0.last_key_value()).map(|(latency, _)| *latency)
    }

    pub fn merge(&mut self, other: &Self) {
        other.counts().for_each(|(latency, count)| self.add(latency, count));
    }

    /// What was counted since an earlier state of the same counters.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let grown = |(latency, count): (u64, u64)| {
            let before = earlier.0.get(&latency).copied().unwrap_or_default();
            (latency, count.saturating_sub(before))
        };
        self.counts().map(grown).filter(|(_, count)| *count > 0).collect()
    }

    fn add(&mut self, latency: u64, count: u64) {
        *self.0.entry(latency).or_default() += count;
    }
}

/// Parses a histogram file of tracefs with the keys `rwbs` and `lat` into reads and writes; flushes and discards, which
/// transfer nothing, are in neither. The error is the invalid line.
pub(super) fn parse(text: &str) -> Result<[LatencyHistogram; 2], &str> {
    let [mut reads, mut writes] = <[LatencyHistogram; 2]>::default();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let (operation, latency, count) = parse_line(line).ok_or(line)?;
        // A preceding F is a flush before the request (blktrace's `blk_fill_rwbs`).
        match operation.strip_prefix('F').unwrap_or(operation).chars().next() {
            Some('R') => reads.add(latency, count),
            Some('W') => writes.add(latency, count),
            _ => {}
        }
    }
    Ok([reads, writes])
}

/// Operation, midpoint and count: `{ rwbs: WS    , lat: ~ 930-939 } hitcount:          1`.
fn parse_line(line: &str) -> Option<(&str, u64, u64)> {
    let (keys, count) = line.strip_prefix('{')?.split_once('}')?;
    let count = count.trim().strip_prefix("hitcount:")?.trim().parse().ok()?;
    let (operation, latency) = keys.split_once(',')?;
    let operation = operation.trim().strip_prefix("rwbs:")?.trim();
    let (from, to) = latency.trim().strip_prefix("lat: ~")?.trim().split_once('-')?;
    let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
    Some((operation, from.midpoint(to.checked_add(1)?), count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "# event histogram\n#\n# trigger info: hist:keys=rwbs,lat.buckets=10 [active]\n#\n\n\
        { rwbs: WS                                                , lat: ~ 930-939 } hitcount:          1\n\
        { rwbs: R                                                 , lat: ~ 70-79 } hitcount:         12\n\
        { rwbs: RA                                                , lat: ~ 70-79 } hitcount:          3\n\
        { rwbs: FF                                                , lat: ~ 10-19 } hitcount:          3\n\
        { rwbs: FWFS                                              , lat: ~ 1000-1999 } hitcount:          2\n\
        \nTotals:\n    Hits: 19\n    Entries: 4\n    Dropped: 0\n";

    #[test]
    fn reads_and_writes_of_the_kernels_text_are_distinguished() {
        let [reads, writes] = parse(TEXT).unwrap();
        assert_eq!(reads.counts().collect::<Vec<_>>(), [(75, 15)]);
        assert_eq!(writes.counts().collect::<Vec<_>>(), [(935, 1), (1500, 2)]);
        assert_eq!(parse("{ rwbs: R, lat: 7 } hitcount: 1\n").unwrap_err(), "{ rwbs: R, lat: 7 } hitcount: 1");
    }

    #[test]
    fn percentiles_are_midpoints_by_nearest_rank() {
        let histogram = LatencyHistogram::from_iter([(5, 50), (15, 49), (1500, 1)]);
        let at = |percent| histogram.percentile(percent).unwrap();
        assert_eq!([at(0.0), at(50.0), at(51.0), at(99.0), at(100.0)], [5, 5, 15, 15, 1500]);
        assert_eq!(LatencyHistogram::default().percentile(50.0), None);
    }

    #[test]
    fn a_second_is_what_the_counters_grew_by() {
        let earlier = LatencyHistogram::from_iter([(5, 10), (15, 1)]);
        let mut later = earlier.clone();
        later.merge(&LatencyHistogram::from_iter([(5, 2), (25, 1)]));
        assert_eq!(later.since(&earlier), LatencyHistogram::from_iter([(5, 2), (25, 1)]));
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text in "[{} :,~0-9a-zRW\\n-]{0,80}") {
            // Whether it is an error does not matter.
            let _ = parse(&text);
        }
    }
}
