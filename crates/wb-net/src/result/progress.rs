//! Progress of a machine by interval, restricted to the data phase.

use super::ProgressPoint;
use crate::engine::clock::Nanos;
use crate::engine::protocol::EngineProgress;

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

#[cfg(test)]
mod tests {
    use super::*;

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
