//! A buffer of latencies, recorded into histograms in batches to keep them out of the measured path's cache.
//!
//! A histogram is spread over so much memory that between two messages the kernel's copying pushes the part that is
//! needed out of the caches; several are concerned by each execution. So times are jotted down in a row, and recorded
//! when it is full.

use super::{clock::Nanos, tally::TransactionTally};

/// So many go into a row.
const CAPACITY: usize = 128;

/// What a time is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LatencyKind {
    /// Messages of a flowop, by its position in the transaction: each took so long.
    Flowop { flowop: u32, messages: u32 },
    /// A round, which ended now.
    Round { now: Nanos },
}

/// A time that is not recorded yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct LatencyEntry {
    pub(super) transaction: u32,
    pub(super) kind: LatencyKind,
    pub(super) nanos: Nanos,
}

/// Those of the strands of one group that one thread carries out.
#[derive(Debug)]
pub(super) struct LatencyBuffer {
    entries: Vec<LatencyEntry>,
}

impl LatencyBuffer {
    pub(super) fn new() -> Self {
        Self { entries: Vec::with_capacity(CAPACITY) }
    }

    #[inline]
    pub(super) fn push(&mut self, jot: LatencyEntry, into: &mut [TransactionTally]) {
        if self.entries.len() == CAPACITY {
            self.flush(into);
        }
        self.entries.push(jot);
    }

    /// Records all.
    pub(super) fn flush(&mut self, into: &mut [TransactionTally]) {
        for LatencyEntry { transaction, kind: of, nanos } in self.entries.drain(..) {
            let tally = &mut into[transaction as usize];
            match of {
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
    use crate::engine::{
        latency::LatencyHistogram,
        tally::{FlowopTally, Intervals},
    };

    #[test]
    fn all_that_is_jotted_down_is_recorded_once() {
        let mut tally = TransactionTally {
            began: 0,
            ended: 0,
            rounds: LatencyHistogram::new(3),
            response: None,
            lag: None,
            flowops: vec![FlowopTally::new(3, false, 0)],
            intervals: Intervals::new(1000),
        };
        tally.intervals.begin(0, None);
        let mut jots = LatencyBuffer::new();
        let rounds = 3 * CAPACITY as u64 + 5;
        for now in 0..rounds {
            let of = [LatencyKind::Flowop { flowop: 0, messages: 2 }, LatencyKind::Round { now }];
            for of in of {
                jots.push(LatencyEntry { transaction: 0, kind: of, nanos: 7 }, std::slice::from_mut(&mut tally));
            }
        }
        jots.flush(std::slice::from_mut(&mut tally));
        jots.flush(std::slice::from_mut(&mut tally));
        assert_eq!((tally.rounds.count(), tally.flowops[0].service.count()), (rounds, 2 * rounds));
        assert_eq!(tally.intervals.times[0].count(), rounds);
    }
}
