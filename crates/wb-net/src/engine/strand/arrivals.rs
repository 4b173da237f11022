//! Arrivals of numbered datagrams: gaps, reordering and jitter.

use crate::engine::clock::Nanos;
use wb_results::net::DatagramProgress;

/// The datagrams of one connection in one transaction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrivals {
    pub(super) counts: DatagramProgress,
    /// Arrival minus sending of the last datagram, by clocks that differ by an unknown offset.
    transit: Option<i64>,
    /// Position of the flowop that received last, in its transaction.
    pub(super) flowop: usize,
}

impl Arrivals {
    /// Adds a datagram's times. Jitter as in RFC 3550, 6.4.1 and A.8: the offset of the clocks cancels out.
    pub(super) fn record_times(&mut self, sent: Nanos, arrived: Nanos) {
        let transit = arrived.wrapping_sub(sent) as i64;
        if let Some(last) = self.transit.replace(transit) {
            let change = transit.wrapping_sub(last).unsigned_abs() as f64;
            self.counts.jitter_ns += (change - self.counts.jitter_ns) / 16.0;
        }
    }

    /// Counts datagrams that were expected before the one that arrived.
    pub(super) fn record_gap(&mut self, datagrams: u64) {
        self.counts.missing += datagrams;
    }

    /// Counts a datagram that arrived after one that was sent later, and so had been counted as missing.
    pub(super) fn record_reordered(&mut self) {
        self.counts.reordered += 1;
        self.counts.missing = self.counts.missing.saturating_sub(1);
    }

    /// The jitter in nanoseconds, if at least two datagrams arrived.
    pub(super) fn jitter(&self) -> Option<f64> {
        self.transit.map(|_| self.counts.jitter_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_follows_the_formula_whatever_the_offset_of_the_clocks() {
        for offset in [0, 1_000_000_u64, u64::MAX - 500] {
            let mut arrivals = Arrivals::default();
            // Transit times of 100, 116 and 100 ns.
            for (sent, arrived) in [(0, 100), (1000, 1116), (2000, 2100)] {
                arrivals.record_times(sent, offset.wrapping_add(arrived));
            }
            assert_eq!(arrivals.jitter(), Some(1.0 + 15.0 / 16.0), "{offset}");
        }
    }

    #[test]
    fn a_reordered_datagram_is_not_missing() {
        let mut arrivals = Arrivals::default();
        arrivals.record_gap(3);
        arrivals.record_reordered();
        assert_eq!((arrivals.counts.missing, arrivals.counts.reordered), (2, 1));
        assert_eq!(arrivals.jitter(), None);
    }
}
