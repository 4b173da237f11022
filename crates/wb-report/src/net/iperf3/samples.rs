//! Samples of the streams of a test, and the intervals between them.

use std::collections::BTreeMap;

use wb_net_profile::NetProfile;
use wb_results::net::{ConnectionSnapshot, TcpSnapshot};
use wb_results::net::{DatagramProgress, StrandProgress};

use super::text::StreamTotal;
use super::{Amount, Stream, Test};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    pub group: u32,
    /// Index in the group.
    pub strand: u32,
}

/// In seconds; a shorter rest of a window is not an interval of its own.
const SHORTEST: f64 = 0.01;

/// The samples that one side took.
#[derive(Debug, Default)]
pub struct Samples {
    streams: BTreeMap<StreamId, StreamSamples>,
    /// The transactions that are warm-ups, by group and position.
    warm_ups: Vec<(u32, u32)>,
}

#[derive(Debug, Default)]
struct StreamSamples {
    samples: Vec<StrandProgress>,
    intervals: Vec<Interval>,
}

/// What a stream moved between two samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// In seconds since the start of the window.
    pub start: f64,
    pub end: f64,
    pub bytes: u64,
    pub blocks: u64,
    /// Segments retransmitted by this side.
    pub retransmits: u64,
    /// Whether it is before the measurement.
    pub omitted: bool,
    /// The connection at the end of the interval.
    pub tcp: Option<TcpSnapshot>,
    pub datagrams: DatagramProgress,
}

impl Interval {
    pub fn seconds(&self) -> f64 {
        self.end - self.start
    }

    pub fn bits_per_second(&self) -> f64 {
        if self.seconds() > 0.0 { self.bytes as f64 * 8.0 / self.seconds() } else { 0.0 }
    }

    /// Counts what the receiver counted, and what it missed, as sent. A sender's system call may not have returned when
    /// its window ended, and a lost sender has reported less than it sent: the sender's window is taken to end with the
    /// receiver's. If the windows differ in length, the longer one included time in which nothing was left to send.
    pub(super) fn include_received(&mut self, receiver: &Self) {
        let blocks = receiver.blocks + receiver.datagrams.missing;
        if self.bytes < receiver.bytes || self.blocks < blocks {
            self.end = self.end.max(receiver.end);
        }
        // Of datagrams, which have one size.
        let missed = receiver.bytes.checked_div(receiver.blocks).unwrap_or(0) * receiver.datagrams.missing;
        self.bytes = self.bytes.max(receiver.bytes + missed);
        self.blocks = self.blocks.max(blocks);
        let rate = receiver.bits_per_second();
        if self.bits_per_second() < rate {
            self.end = self.start + self.bytes as f64 * 8.0 / rate;
        }
    }

    fn extend(&mut self, next: &Self) {
        self.end = next.end;
        self.bytes += next.bytes;
        self.blocks += next.blocks;
        self.retransmits += next.retransmits;
        self.datagrams.missing += next.datagrams.missing;
        self.datagrams.reordered += next.datagrams.reordered;
    }

    /// The sum over streams: the times of the first, and the mean of the jitter.
    pub fn sum<'a>(intervals: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut intervals = intervals.into_iter();
        let mut sum = Self { tcp: None, ..intervals.next()?.clone() };
        let mut count = 1.0;
        for interval in intervals {
            sum.bytes += interval.bytes;
            sum.blocks += interval.blocks;
            sum.retransmits += interval.retransmits;
            sum.datagrams.missing += interval.datagrams.missing;
            sum.datagrams.reordered += interval.datagrams.reordered;
            sum.datagrams.jitter_ns += interval.datagrams.jitter_ns;
            count += 1.0;
        }
        sum.datagrams.jitter_ns /= count;
        Some(sum)
    }
}

impl Samples {
    pub fn new(profile: &NetProfile) -> Self {
        let groups = profile.groups.iter().zip(0..);
        let warm_ups = groups.flat_map(|(group, index)| {
            let transactions = group.transactions.iter().zip(0..);
            transactions.filter(|(transaction, _)| transaction.warm_up).map(move |(_, position)| (index, position))
        });
        Self { streams: BTreeMap::new(), warm_ups: warm_ups.collect() }
    }

    /// Adds a sample; returns the interval that ends with it. A short rest at the end of a window is added to the
    /// interval before, and none ends with it.
    pub fn push(&mut self, sample: &StrandProgress) -> Option<&Interval> {
        let omitted = self.warm_ups.contains(&(sample.group, sample.transaction));
        let id = StreamId { group: sample.group, strand: sample.strand };
        let stream = self.streams.entry(id).or_default();
        let samples = &stream.samples;
        let first =
            samples.iter().rposition(|other| other.transaction != sample.transaction).map_or(0, |last| last + 1);
        let window = samples.get(first).zip(samples.last()).filter(|_| first < samples.len());
        let next = window.map(|(first, before)| (between(first, before, sample, omitted), before.time > first.time));
        stream.samples.push(sample.clone());
        let (next, has_interval) = next?;
        if next.seconds() >= SHORTEST || (!has_interval && next.seconds() > 0.0) {
            stream.intervals.push(next);
            return stream.intervals.last();
        }
        if let Some(last) = stream.intervals.last_mut().filter(|_| has_interval) {
            last.extend(&next);
        }
        None
    }

    fn of(&self, id: StreamId) -> &[StrandProgress] {
        self.streams.get(&id).map_or(&[], |stream| stream.samples.as_slice())
    }

    /// The connection of a stream when it began.
    pub fn first_connection(&self, id: StreamId) -> Option<&ConnectionSnapshot> {
        self.of(id).iter().find_map(|sample| sample.connection.as_ref())
    }

    pub fn intervals(&self, id: StreamId) -> &[Interval] {
        self.streams.get(&id).map_or(&[], |stream| stream.intervals.as_slice())
    }

    /// The number of intervals, from the first, that are complete: each is followed by another one of its stream, or
    /// ends before the rest of the window begins.
    pub fn settled(&self, test: &Test) -> usize {
        let is_settled = |all: &[Interval], index: usize| match test.amount {
            _ if index + 1 < all.len() => true,
            Amount::Time(duration) => {
                let window = if all[index].omitted { test.omit } else { duration };
                all[index].end + SHORTEST <= window.as_secs_f64()
            }
            Amount::Bytes(_) | Amount::Blocks(_) => false,
        };
        let of_stream = |stream: &Stream| {
            let all = self.intervals(stream.id);
            (0..all.len()).take_while(|index| is_settled(all, *index)).count()
        };
        test.streams.iter().map(of_stream).min().unwrap_or(0)
    }

    /// An interval of a stream. With `other`, the samples of the other side after the end, the last one includes what
    /// the total of the stream has beyond its intervals.
    pub(super) fn interval(
        &self,
        test: &Test,
        stream: &Stream,
        index: usize,
        other: Option<Option<&Self>>,
    ) -> Option<Interval> {
        let all = self.intervals(stream.id);
        let mut interval = all.get(index)?.clone();
        if let (Some(other), true) = (other, index + 1 == all.len()) {
            let total = StreamTotal::new(test, stream, self, other);
            let total = if test.sends(stream) { total.sender } else { total.receiver };
            if let Some((total, own)) = total.zip(self.total(stream.id)) {
                interval.bytes += total.bytes.saturating_sub(own.bytes);
                interval.blocks += total.blocks.saturating_sub(own.blocks);
            }
        }
        Some(interval)
    }

    /// The whole measurement of a stream, as one interval.
    pub fn total(&self, id: StreamId) -> Option<Interval> {
        let measured = |sample: &&StrandProgress| !self.warm_ups.contains(&(sample.group, sample.transaction));
        let mut samples = self.of(id).iter().filter(measured);
        let first = samples.next()?;
        let last = samples.next_back()?;
        let mut total = between(first, first, last, false);
        if total.tcp.is_none() {
            // The connection was closed with the last sample.
            let open = self.of(id).iter().rev().filter(measured).find_map(|sample| sample.connection.as_ref());
            total.tcp = open.and_then(|connection| connection.tcp.clone());
        }
        Some(total)
    }
}

fn seconds(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e9
}

/// The interval between two samples of a window that began with `first`.
fn between(first: &StrandProgress, before: &StrandProgress, now: &StrandProgress, omitted: bool) -> Interval {
    let tcp = |sample: &StrandProgress| sample.connection.as_ref().and_then(|connection| connection.tcp.clone());
    let retransmits = |sample: &StrandProgress| tcp(sample).map_or(0, |tcp| tcp.retransmits);
    let since = |count: fn(&StrandProgress) -> u64| count(now).saturating_sub(count(before));
    // The counts of datagrams begin with the window.
    let earlier = if before.time > first.time { before.datagrams } else { DatagramProgress::default() };
    Interval {
        start: seconds(first.time, before.time),
        end: seconds(first.time, now.time),
        bytes: since(|sample| sample.sent) + since(|sample| sample.received),
        blocks: since(|sample| sample.operations),
        retransmits: retransmits(now).saturating_sub(retransmits(before)),
        omitted,
        tcp: tcp(now),
        datagrams: DatagramProgress {
            reordered: now.datagrams.reordered.saturating_sub(earlier.reordered),
            missing: now.datagrams.missing.saturating_sub(earlier.missing),
            jitter_ns: now.datagrams.jitter_ns,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wb_net_profile::presets::{PresetConfig, stream};

    use super::*;

    fn sample(transaction: u32, millis: u64, sent: u64) -> StrandProgress {
        StrandProgress {
            group: 0,
            transaction,
            strand: 0,
            time: millis * 1_000_000,
            sent,
            received: 0,
            operations: sent / 10,
            datagrams: DatagramProgress::default(),
            connection: None,
        }
    }

    #[test]
    fn intervals_begin_anew_with_the_measurement() {
        let setup = PresetConfig { warm_up: Some(Duration::from_secs(1)), ..PresetConfig::new("h") };
        let mut samples = Samples::new(&stream(&setup, 10));
        let pushed = [(1, 50, 0), (1, 1050, 100), (2, 1060, 110), (2, 2060, 310), (2, 3055, 500), (2, 3060, 520)].map(
            |(transaction, position, sent)| {
                samples.push(&sample(transaction, position, sent)).map(|interval| interval.bytes)
            },
        );
        assert_eq!(pushed, [None, Some(100), None, Some(200), Some(190), None]);
        let id = StreamId { group: 0, strand: 0 };
        let seen: Vec<_> = samples
            .intervals(id)
            .iter()
            .map(|interval| (interval.start, interval.end, interval.bytes, interval.omitted))
            .collect();
        assert_eq!(seen, [(0.0, 1.0, 100, true), (0.0, 1.0, 200, false), (1.0, 2.0, 210, false)]);
        let total = samples.total(id).unwrap();
        assert_eq!((total.bytes, total.blocks, total.seconds()), (410, 41, 2.0));
    }
}
