//! Counters and latencies of a run: recorded by each executor in memory of its own, and merged at the end.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};

use super::clock::Nanos;
use super::latency::LatencyHistogram;
use wb_results::net::DatagramProgress;

/// Significant digits of the histograms of intervals: an error of about 1 %.
const INTERVAL_DIGITS: u8 = 2;

/// Number of intervals that are preallocated before a transaction; further ones are allocated on demand.
const PREALLOCATED: u64 = 256;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FlowopTally {
    /// Executions that ended within the window.
    pub count: u64,
    /// Bytes moved by those.
    pub bytes: u64,
    /// Datagrams that did not arrive in time.
    pub timeouts: u64,
    /// Datagrams that arrived after they had been given up, or out of order.
    pub late: u64,
    /// Datagrams that arrived after one that was sent later, among those that only this flowop receives.
    pub reordered: u64,
    /// Jitter of the connections on which numbered datagrams arrived.
    pub jitter: JitterTally,
    /// Failures that were ignored (`canfail`), by [`failure_number`].
    pub errors: BTreeMap<i32, u64>,
    /// From the start of an execution to its end.
    pub service: LatencyHistogram,
    /// From the intended start of an execution to its end; only with a rate.
    pub response: Option<LatencyHistogram>,
    /// Delay of the actual start behind the intended one; only with a rate.
    pub lag: Option<LatencyHistogram>,
    /// Zero without a rate.
    pub schedule: ScheduleTally,
    /// CPU time of the executions in nanoseconds, if it is measured.
    pub cpu: u64,
    /// Performance counters over the executions; empty if none are measured.
    pub counters: Vec<u64>,
}

impl FlowopTally {
    pub fn new(digits: u8, paced: bool, counters: usize) -> Self {
        let histogram = || LatencyHistogram::new(digits);
        Self {
            count: 0,
            bytes: 0,
            timeouts: 0,
            late: 0,
            reordered: 0,
            jitter: JitterTally::default(),
            errors: BTreeMap::new(),
            service: histogram(),
            response: paced.then(histogram),
            lag: paced.then(histogram),
            schedule: ScheduleTally::default(),
            cpu: 0,
            counters: vec![0; counters],
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.timeouts += other.timeouts;
        self.late += other.late;
        self.reordered += other.reordered;
        self.jitter.merge(other.jitter);
        for (&error, count) in &other.errors {
            *self.errors.entry(error).or_default() += count;
        }
        self.service.merge(&other.service);
        for (own, others) in [(&mut self.response, &other.response), (&mut self.lag, &other.lag)] {
            if let (Some(own), Some(others)) = (own, others) {
                own.merge(others);
            }
        }
        self.schedule.due += other.schedule.due;
        self.schedule.missed += other.schedule.missed;
        self.schedule.slipped += other.schedule.slipped;
        self.cpu += other.cpu;
        for (own, others) in self.counters.iter_mut().zip(&other.counters) {
            *own += others;
        }
    }
}

/// Executions of a flowop that its rate scheduled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleTally {
    pub due: u64,
    /// Executions that never began, or not before the end of the flowop's schedule.
    pub missed: u64,
    /// How long single executions were kept from their schedule by the rest of their rounds.
    pub slipped: Nanos,
}

/// The jitter of several connections at the end of a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct JitterTally {
    pub connections: u64,
    /// Sum of their jitter in nanoseconds.
    pub sum: f64,
}

impl JitterTally {
    pub(crate) fn add(&mut self, jitter: f64) {
        self.merge(Self { connections: 1, sum: jitter });
    }

    fn merge(&mut self, other: Self) {
        self.connections += other.connections;
        self.sum += other.sum;
    }

    /// The mean in nanoseconds, as iperf3 reports it for several streams; `None` without a connection.
    pub fn mean(self) -> Option<f64> {
        (self.connections > 0).then(|| self.sum / self.connections as f64)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TransactionTally {
    /// When the first strand began, on the engine's monotonic clock; `u64::MAX` if none did.
    pub began: Nanos,
    /// When the last strand finished, or the end of the window.
    pub ended: Nanos,
    /// Durations of rounds, from the start of the first flowop to the end of the last.
    pub rounds: LatencyHistogram,
    /// Rounds in which a flowop failed or a datagram was lost: they have no duration.
    pub failed_rounds: u64,
    pub pending: PendingRounds,
    /// From the intended start of a round to its end; only with a rate.
    pub response: Option<LatencyHistogram>,
    /// Delay of the actual start of rounds behind the intended one; only with a rate.
    pub lag: Option<LatencyHistogram>,
    pub flowops: Vec<FlowopTally>,
    pub intervals: Intervals,
}

impl TransactionTally {
    pub fn add(&mut self, other: &Self) {
        self.began = self.began.min(other.began);
        self.ended = self.ended.max(other.ended);
        self.rounds.merge(&other.rounds);
        self.failed_rounds += other.failed_rounds;
        self.pending.add(&other.pending);
        for (own, others) in [(&mut self.response, &other.response), (&mut self.lag, &other.lag)] {
            if let (Some(own), Some(others)) = (own, others) {
                own.merge(others);
            }
        }
        for (own, others) in self.flowops.iter_mut().zip(&other.flowops) {
            own.add(others);
        }
        self.intervals.add(&other.intervals);
    }
}

/// Rounds that had not ended when their window did, by how long each had been open, or due by the rate: it took at
/// least that. Only `open` is known without a rate.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PendingRounds {
    pub open: Option<LatencyHistogram>,
    /// How long each open round had been due, since the start that the rate intended.
    pub open_response: Option<LatencyHistogram>,
    /// How long each round had been due that never began.
    pub not_started: Option<LatencyHistogram>,
    /// Rounds that were due in the window, begun or not.
    pub due: u64,
    /// Rounds of a number of iterations that began after the period of the last was over.
    pub overdue: u64,
}

impl PendingRounds {
    pub fn add(&mut self, other: &Self) {
        let parts = [
            (&mut self.open, &other.open),
            (&mut self.open_response, &other.open_response),
            (&mut self.not_started, &other.not_started),
        ];
        for (own, others) in parts {
            match (own, others) {
                (Some(own), Some(others)) => own.merge(others),
                (own @ None, others) => own.clone_from(others),
                (Some(_), None) => {}
            }
        }
        self.due += other.due;
        self.overdue += other.overdue;
    }

    /// 0 without an open round.
    pub fn longest(&self) -> Nanos {
        self.open.as_ref().map_or(0, |open| open.max)
    }

    pub fn open_count(&self) -> u64 {
        self.open.as_ref().map_or(0, LatencyHistogram::count)
    }

    pub fn not_started_count(&self) -> u64 {
        self.not_started.as_ref().map_or(0, LatencyHistogram::count)
    }
}

/// Latencies by interval, counted from the start of the transaction.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Intervals {
    pub length: Nanos,
    /// One histogram for each interval that has begun.
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
        if let Some(histogram) = self.times.last_mut() {
            histogram.record(nanos);
        }
    }

    fn add(&mut self, other: &Self) {
        for (position, others) in other.times.iter().enumerate() {
            match self.times.get_mut(position) {
                Some(own) => own.merge(others),
                None => self.times.push(others.clone()),
            }
        }
    }
}

/// Counters of one strand in the data phase: in all transactions that move data, or in all if none does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrandTally {
    pub strand: u32,
    /// Executions of flowops.
    pub operations: u64,
    pub rounds: u64,
    /// Bytes, like `received`.
    pub sent: u64,
    pub received: u64,
    /// Of the durations of rounds, like `min` and `max`.
    pub sum: Nanos,
    pub min: Nanos,
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

/// Live counters of one executor, their only writer, on separate cache lines; another thread reads them for reports.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct LiveCounters {
    sent: AtomicU64,
    received: AtomicU64,
    operations: AtomicU64,
    reordered: AtomicU64,
    missing: AtomicU64,
    /// The bits of a float.
    jitter: AtomicU64,
    last_datagram: AtomicU64,
}

/// A snapshot of live counters, summed over executors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LiveTotals {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) operations: u64,
}

impl LiveCounters {
    /// Adds to the counters; only their owner may call this.
    #[inline]
    pub(crate) fn add(&self, sent: u64, received: u64, operations: u64) {
        // With a single writer no read-modify-write instruction is needed.
        self.sent.store(self.sent.load(Relaxed) + sent, Relaxed);
        self.received.store(self.received.load(Relaxed) + received, Relaxed);
        self.operations.store(self.operations.load(Relaxed) + operations, Relaxed);
    }

    /// Replaces what is known of received datagrams; only their owner may call this.
    #[inline]
    pub(crate) fn set_datagrams(&self, counts: DatagramProgress, arrived: Nanos) {
        self.last_datagram.store(arrived, Relaxed);
        self.reordered.store(counts.reordered, Relaxed);
        self.missing.store(counts.missing, Relaxed);
        self.jitter.store(counts.jitter_ns.to_bits(), Relaxed);
    }

    pub(crate) fn datagrams(&self) -> DatagramProgress {
        DatagramProgress {
            reordered: self.reordered.load(Relaxed),
            missing: self.missing.load(Relaxed),
            jitter_ns: f64::from_bits(self.jitter.load(Relaxed)),
        }
    }

    /// When the last numbered datagram arrived; 0 if none did.
    pub(crate) fn last_datagram(&self) -> Nanos {
        self.last_datagram.load(Relaxed)
    }

    pub(crate) fn totals(&self) -> LiveTotals {
        LiveTotals {
            sent: self.sent.load(Relaxed),
            received: self.received.load(Relaxed),
            operations: self.operations.load(Relaxed),
        }
    }

    pub(crate) fn snapshot(all: &[Arc<Self>]) -> LiveTotals {
        all.iter().map(|one| one.totals()).fold(LiveTotals::default(), |sum, one| LiveTotals {
            sent: sum.sent + one.sent,
            received: sum.received + one.received,
            operations: sum.operations + one.operations,
        })
    }
}

/// The number under which the end of a connection is counted.
const CLOSED: i32 = -1;

/// The number under which a failure is counted: `errno`, or a negative one where the kernel reported no error.
pub(crate) fn failure_number(error: &io::Error) -> i32 {
    match (error.raw_os_error(), error.kind()) {
        (Some(number), _) => number,
        (None, io::ErrorKind::TimedOut) => libc::ETIMEDOUT,
        (None, io::ErrorKind::NotConnected) => libc::ENOTCONN,
        (None, io::ErrorKind::UnexpectedEof) => CLOSED,
        (None, _) => libc::EIO,
    }
}

pub(crate) fn describe_failure(number: i32) -> String {
    match number {
        CLOSED => "the other side closed the connection".to_owned(),
        number => io::Error::from_raw_os_error(number).to_string(),
    }
}
