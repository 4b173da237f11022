//! Progress of a machine by interval, restricted to the data phase.

use crate::engine::clock::Nanos;
use crate::engine::protocol::EngineProgress;
use wb_results::net::{MachineResult, ProgressPoint};

/// The intervals between progress reports that lie in `began..ended`, by the clock of the reporting machine.
pub(super) fn progress_points(progress: &[EngineProgress], (began, ended): (Nanos, Nanos)) -> Vec<ProgressPoint> {
    let start = EngineProgress { time: 0, ..EngineProgress::default() };
    let reports = std::iter::once(start).chain(progress.iter().copied());
    let pairs = reports.zip(progress).map(|(before, now)| (before, *now));
    pairs
        .filter_map(|(before, now)| {
            let (from, to) = (before.time.max(began), now.time.min(ended));
            (to > from).then(|| ProgressPoint {
                end_seconds: (to - began) as f64 / 1e9,
                seconds: (to - from) as f64 / 1e9,
                sent_bytes: now.sent.saturating_sub(before.sent),
                received_bytes: now.received.saturating_sub(before.received),
                operations: now.operations.saturating_sub(before.operations),
            })
        })
        .collect()
}

/// Bytes that senders sent, by interval: at least those that receivers received in it.
///
/// Each machine cuts intervals by its own clock, and a system call returns after its bytes are on their way, so that a
/// receiver may have counted what its sender has not yet. What waited in socket buffers is sent when it leaves them.
#[derive(Debug, Default)]
pub struct SentByInterval {
    /// Bytes of earlier intervals that senders had not counted yet.
    ahead: f64,
}

impl SentByInterval {
    /// The bytes sent in the next interval, in which senders counted `sent`.
    pub fn next(&mut self, sent: f64, received: f64) -> f64 {
        let shown = (sent - self.ahead).max(received);
        self.ahead += shown - sent;
        shown
    }
}

/// Applies [`SentByInterval`] to one direction, and its rule to the bytes of the whole run.
pub(super) fn raise_sent(senders: &mut [MachineResult], receivers: &[MachineResult]) {
    let Some((first, others)) = senders.split_first_mut() else { return };
    let received: u64 = receivers.iter().map(|machine| machine.received_bytes).sum();
    let sent_by_others: u64 = others.iter().map(|machine| machine.sent_bytes).sum();
    first.sent_bytes = first.sent_bytes.max(received.saturating_sub(sent_by_others));
    let mut intervals = SentByInterval::default();
    let mut from = 0.0;
    for point in &mut first.progress {
        let until = point.end_seconds + point.seconds * CLOCK_TOLERANCE;
        let bytes = |machines: &[MachineResult], count: fn(&ProgressPoint) -> u64| {
            let points = machines.iter().flat_map(|machine| &machine.progress);
            points.filter(|one| (from..until).contains(&one.end_seconds)).map(count).sum::<u64>() as f64
        };
        let others = bytes(others, |point| point.sent_bytes);
        let sent = intervals.next(point.sent_bytes as f64 + others, bytes(receivers, |point| point.received_bytes));
        point.sent_bytes = (sent - others).max(0.0) as u64;
        from = until;
    }
}

/// Intervals of two machines are the same if their ends differ by less than this share of their length.
pub const CLOCK_TOLERANCE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_received_in_an_interval_was_sent_until_its_end() {
        let mut intervals = SentByInterval::default();
        // The sender counts late, then sends in bursts, then is done while its buffer drains.
        let counted = [(426.0, 427.0), (428.0, 427.0), (2000.0, 500.0), (0.0, 500.0), (0.0, 500.0), (0.0, 500.0)];
        let shown = counted.map(|(sent, received)| intervals.next(sent, received));
        assert_eq!(shown, [427.0, 427.0, 2000.0, 500.0, 500.0, 500.0]);
    }

    #[test]
    fn idle_time_before_and_after_is_excluded() {
        let report = |at, sent| EngineProgress { time: at, sent, received: 0, operations: 0 };
        let second = 1_000_000_000;
        let reports = [report(second, 0), report(3 * second, 10), report(4 * second, 30), report(9 * second, 35)];
        let points = progress_points(&reports, (2 * second, 5 * second));
        let seen: Vec<_> = points.iter().map(|point| (point.end_seconds, point.seconds, point.sent_bytes)).collect();
        assert_eq!(seen, [(1.0, 1.0, 10), (2.0, 1.0, 20), (3.0, 1.0, 5)]);
    }
}
