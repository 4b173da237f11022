//! What a machine did by interval, cut to the data phase.

use super::ProgressPoint;
use crate::engine::{clock::Nanos, protocol::EngineProgress};

/// The intervals between looks that lie in `began..ended`, by the clock of the machine that looked.
pub(super) fn progress_points(progress: &[EngineProgress], (began, ended): (Nanos, Nanos)) -> Vec<ProgressPoint> {
    let nothing = EngineProgress { time: 0, ..EngineProgress::default() };
    let looks = std::iter::once(nothing).chain(progress.iter().copied());
    let pairs = looks.zip(progress).map(|(before, now)| (before, *now));
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
    fn idle_time_before_and_after_is_left_out() {
        let look = |at, sent| EngineProgress { time: at, sent, received: 0, operations: 0 };
        let second = 1_000_000_000;
        let looks = [look(second, 0), look(3 * second, 10), look(4 * second, 30), look(9 * second, 35)];
        let points = progress_points(&looks, (2 * second, 5 * second));
        let seen: Vec<_> = points.iter().map(|point| (point.end_seconds, point.seconds, point.sent_bytes)).collect();
        assert_eq!(seen, [(1.0, 1.0, 10), (2.0, 1.0, 20), (3.0, 1.0, 5)]);
    }
}
