//! What is counted: by one executor, in memory of its own, and merged when a run is over.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use serde::{Deserialize, Serialize};

use super::{clock::Nanos, latency::LatencyHistogram};

/// Of the histograms of intervals; about 1 % of a value.
const INTERVAL_DIGITS: u8 = 2;

/// So many intervals are made ready before a transaction; more are made as they come.
const PREALLOCATED: u64 = 256;

/// What one flowop did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FlowopTally {
    /// Executions that ended within the window.
    pub count: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Datagrams that were waited for in vain.
    pub timeouts: u64,
    /// Datagrams that came after they had been given up, or out of turn.
    pub late: u64,
    /// Failures that were passed over (`canfail`), by the system's error number.
    pub errors: BTreeMap<i32, u64>,
    /// From the start of an execution to its end.
    pub service: LatencyHistogram,
    /// From when the rate wanted it to start to its end; only with a rate.
    pub response: Option<LatencyHistogram>,
    /// By how much executions started later than the rate wanted; only with a rate.
    pub lag: Option<LatencyHistogram>,
    /// CPU time of the executions in nanoseconds, where it was asked for.
    pub cpu: u64,
    /// Hardware counters over the executions, where they were asked for.
    pub counters: Vec<u64>,
}

impl FlowopTally {
    /// Of a flowop that did nothing yet.
    pub fn new(digits: u8, paced: bool, counters: usize) -> Self {
        let times = || LatencyHistogram::new(digits);
        Self {
            count: 0,
            bytes: 0,
            timeouts: 0,
            late: 0,
            errors: BTreeMap::new(),
            service: times(),
            response: paced.then(times),
            lag: paced.then(times),
            cpu: 0,
            counters: vec![0; counters],
        }
    }

    /// Adds another executor's.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.timeouts += other.timeouts;
        self.late += other.late;
        for (&error, count) in &other.errors {
            *self.errors.entry(error).or_default() += count;
        }
        self.service.merge(&other.service);
        for (mine, theirs) in [(&mut self.response, &other.response), (&mut self.lag, &other.lag)] {
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                mine.merge(theirs);
            }
        }
        self.cpu += other.cpu;
        for (mine, theirs) in self.counters.iter_mut().zip(&other.counters) {
            *mine += theirs;
        }
    }
}

/// What one transaction did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TransactionTally {
    /// When the first strand began, on the site's monotonic clock in nanoseconds; `u64::MAX` if none did.
    pub began: Nanos,
    /// When the last strand was done, or the window's end.
    pub ended: Nanos,
    /// Its rounds, from the start of the first flowop to the end of the last.
    pub rounds: LatencyHistogram,
    /// From when the rate wanted a round to start; only with a rate.
    pub response: Option<LatencyHistogram>,
    /// By how much rounds started later than the rate wanted; only with a rate.
    pub lag: Option<LatencyHistogram>,
    /// Its flowops, by position.
    pub flowops: Vec<FlowopTally>,
    /// Its rounds by interval.
    pub intervals: Intervals,
}

impl TransactionTally {
    /// Adds another executor's.
    pub fn add(&mut self, other: &Self) {
        self.began = self.began.min(other.began);
        self.ended = self.ended.max(other.ended);
        self.rounds.merge(&other.rounds);
        for (mine, theirs) in [(&mut self.response, &other.response), (&mut self.lag, &other.lag)] {
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                mine.merge(theirs);
            }
        }
        for (mine, theirs) in self.flowops.iter_mut().zip(&other.flowops) {
            mine.add(theirs);
        }
        self.intervals.add(&other.intervals);
    }
}

/// Times by interval, counted from the begin of the transaction.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Intervals {
    /// How long one is, in nanoseconds.
    pub length: Nanos,
    /// Of each that is over or has begun.
    pub times: Vec<LatencyHistogram>,
    #[serde(skip)]
    begin: Nanos,
    #[serde(skip)]
    end: Nanos,
    #[serde(skip)]
    spare: Vec<LatencyHistogram>,
}

impl Intervals {
    pub(crate) fn new(length: Nanos) -> Self {
        Self { length: length.max(1), ..Self::default() }
    }

    /// Makes ready for a transaction, which may go on for so long.
    pub(crate) fn begin(&mut self, begin: Nanos, window: Option<Nanos>) {
        let count = window.map_or(2, |window| (window / self.length + 2).min(PREALLOCATED));
        self.begin = begin;
        self.end = begin + self.length;
        self.spare = (0..count).map(|_| LatencyHistogram::new(INTERVAL_DIGITS)).collect();
        self.times = Vec::with_capacity(count as usize + 1);
        self.times.push(LatencyHistogram::new(INTERVAL_DIGITS));
    }

    #[inline]
    pub(crate) fn record(&mut self, now: Nanos, nanos: Nanos) {
        while now >= self.end {
            self.end += self.length;
            let next = self.spare.pop().unwrap_or_else(|| LatencyHistogram::new(INTERVAL_DIGITS));
            self.times.push(next);
        }
        if let Some(times) = self.times.last_mut() {
            times.record(nanos);
        }
    }

    fn add(&mut self, other: &Self) {
        for (position, theirs) in other.times.iter().enumerate() {
            match self.times.get_mut(position) {
                Some(mine) => mine.merge(theirs),
                None => self.times.push(theirs.clone()),
            }
        }
    }
}

/// What one strand did in all transactions that move data, or in all if none does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrandTally {
    /// Which strand of its group.
    pub strand: u32,
    /// Executions of flowops.
    pub operations: u64,
    /// Rounds.
    pub rounds: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Its rounds together, in nanoseconds.
    pub sum: Nanos,
    /// The shortest round in nanoseconds.
    pub min: Nanos,
    /// The longest.
    pub max: Nanos,
}

impl StrandTally {
    #[inline]
    pub(crate) fn record_round(&mut self, nanos: Nanos) {
        self.min = if self.rounds == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.rounds += 1;
        self.sum += nanos;
    }
}

/// Live counters of one executor, read by another thread for progress reports. Each executor has its own, on cache
/// lines of its own, and only it writes there.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct LiveCounters {
    sent: AtomicU64,
    received: AtomicU64,
    operations: AtomicU64,
}

/// A look at what was published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LiveTotals {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) operations: u64,
}

impl LiveCounters {
    /// Adds to one's own figures; only the owner may.
    #[inline]
    pub(crate) fn add(&self, sent: u64, received: u64, operations: u64) {
        // One writer: no read-modify-write instruction is needed.
        self.sent.store(self.sent.load(Relaxed) + sent, Relaxed);
        self.received.store(self.received.load(Relaxed) + received, Relaxed);
        self.operations.store(self.operations.load(Relaxed) + operations, Relaxed);
    }

    pub(crate) fn snapshot(all: &[Arc<Self>]) -> LiveTotals {
        all.iter().fold(LiveTotals::default(), |sum, one| LiveTotals {
            sent: sum.sent + one.sent.load(Relaxed),
            received: sum.received + one.received.load(Relaxed),
            operations: sum.operations + one.operations.load(Relaxed),
        })
    }
}
