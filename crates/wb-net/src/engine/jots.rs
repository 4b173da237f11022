//! Times on their way into histograms.
//!
//! A histogram is spread over so much memory that between two messages the kernel's copying pushes the part that is
//! needed out of the caches; several are concerned by each execution. So times are jotted down in a row, and recorded
//! when it is full.

use super::{clock::Nanos, tally::TransactionTally};

/// So many go into a row.
const ROW: usize = 128;

/// What a time is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Messages of a flowop, by its position in the transaction: each took so long.
    Flowop { flowop: u32, messages: u32 },
    /// A round, which ended now.
    Round { now: Nanos },
}

/// A time that is not recorded yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jot {
    pub(super) transaction: u32,
    pub(super) of: Of,
    pub(super) nanos: Nanos,
}

/// Those of the strands of one group that one thread carries out.
#[derive(Debug)]
pub(super) struct Jots {
    row: Vec<Jot>,
}

impl Jots {
    pub(super) fn new() -> Self {
        Self { row: Vec::with_capacity(ROW) }
    }

    #[inline]
    pub(super) fn jot(&mut self, jot: Jot, into: &mut [TransactionTally]) {
        if self.row.len() == ROW {
            self.record(into);
        }
        self.row.push(jot);
    }

    /// Records all.
    pub(super) fn record(&mut self, into: &mut [TransactionTally]) {
        for Jot { transaction, of, nanos } in self.row.drain(..) {
            let tally = &mut into[transaction as usize];
            match of {
                Of::Flowop { flowop, messages } => {
                    tally.flowops[flowop as usize].service.record_many(nanos, messages.into());
                }
                Of::Round { now } => {
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
        tally::{FlowopTally, Intervals},
        times::Times,
    };

    #[test]
    fn all_that_is_jotted_down_is_recorded_once() {
        let mut tally = TransactionTally {
            began: 0,
            ended: 0,
            rounds: Times::new(3),
            response: None,
            lag: None,
            flowops: vec![FlowopTally::new(3, false, 0)],
            intervals: Intervals::new(1000),
        };
        tally.intervals.begin(0, None);
        let mut jots = Jots::new();
        let rounds = 3 * ROW as u64 + 5;
        for now in 0..rounds {
            let of = [Of::Flowop { flowop: 0, messages: 2 }, Of::Round { now }];
            for of in of {
                jots.jot(Jot { transaction: 0, of, nanos: 7 }, std::slice::from_mut(&mut tally));
            }
        }
        jots.record(std::slice::from_mut(&mut tally));
        jots.record(std::slice::from_mut(&mut tally));
        assert_eq!((tally.rounds.count(), tally.flowops[0].service.count()), (rounds, 2 * rounds));
        assert_eq!(tally.intervals.times[0].count(), rounds);
    }
}
