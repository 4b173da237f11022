//! A buffer of latencies, recorded into histograms in batches to keep them out of the measured path's cache.
//!
//! A histogram is spread over so much memory that, between two messages, the kernel's copying evicts the needed part
//! from the caches; and each execution concerns several histograms. So latencies are appended to a buffer, and recorded
//! when it is full.

use super::clock::Nanos;
use super::tally::TransactionTally;

/// Entries of the buffer.
const CAPACITY: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LatencyKind {
    /// Messages of a flowop, given by its position in the transaction; each took this long.
    Flowop { flowop: u32, messages: u32 },
    /// A round, which ended at `now`.
    Round { now: Nanos },
}

/// A latency that is not recorded yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct LatencyEntry {
    pub(super) transaction: u32,
    pub(super) kind: LatencyKind,
    pub(super) nanos: Nanos,
}

/// The unrecorded latencies of one group's strands on one thread.
#[derive(Debug)]
pub(super) struct LatencyBuffer {
    entries: Vec<LatencyEntry>,
}

impl LatencyBuffer {
    pub(super) fn new() -> Self {
        Self { entries: Vec::with_capacity(CAPACITY) }
    }

    #[inline]
    pub(super) fn push(&mut self, entry: LatencyEntry, into: &mut [TransactionTally]) {
        if self.entries.len() == CAPACITY {
            self.flush(into);
        }
        self.entries.push(entry);
    }

    pub(super) fn flush(&mut self, into: &mut [TransactionTally]) {
        for LatencyEntry { transaction, kind, nanos } in self.entries.drain(..) {
            let tally = &mut into[transaction as usize];
            match kind {
                LatencyKind::Flowop { flowop, messages } => {
                    tally.flowops[flowop as usize].service.record_many(nanos, messages.into());
                }
                LatencyKind::Round { now } => {
                    tally.rounds.record(nanos);
                    tally.intervals.record(now, nanos);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::latency::LatencyHistogram;
    use crate::engine::tally::{FlowopTally, Intervals, PendingRounds};

    #[test]
    fn each_entry_is_recorded_once() {
        let mut tally = TransactionTally {
            began: 0,
            ended: 0,
            rounds: LatencyHistogram::new(3),
            failed_rounds: 0,
            pending: PendingRounds::default(),
            response: None,
            lag: None,
            flowops: vec![FlowopTally::new(3, false, 0)],
            intervals: Intervals::new(1000),
        };
        tally.intervals.begin(0, None);
        let mut buffer = LatencyBuffer::new();
        let rounds = 3 * CAPACITY as u64 + 5;
        for now in 0..rounds {
            let kinds = [LatencyKind::Flowop { flowop: 0, messages: 2 }, LatencyKind::Round { now }];
            for kind in kinds {
                buffer.push(LatencyEntry { transaction: 0, kind, nanos: 7 }, std::slice::from_mut(&mut tally));
            }
        }
        buffer.flush(std::slice::from_mut(&mut tally));
        buffer.flush(std::slice::from_mut(&mut tally));
        assert_eq!((tally.rounds.count(), tally.flowops[0].service.count()), (rounds, 2 * rounds));
        assert_eq!(tally.intervals.times[0].count(), rounds);
    }
}
