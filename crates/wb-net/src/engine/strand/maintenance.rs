//! The duties of an idle strand: to answer what the other side repeats or tests, and to maintain its connections.

use super::Strand;
use crate::engine::clock::{self, Nanos};

/// Interval between maintenance of connections whose protocol has timers in this process.
const CONNECTION_INTERVAL: Nanos = 1_000_000;

/// Shortest and longest interval between answers to the other side's setup. It grows with the time since this side was
/// prepared, so that many strands do not keep a busy machine from preparing at all. With 300 strands that each looked
/// every millisecond, two CPUs were busy with that alone.
const SETUP_INTERVAL: (Nanos, Nanos) = (1_000_000, 32_000_000);

impl Strand {
    /// Maintains the connections of an idle strand; returns after which time that must be repeated, if at all.
    pub(in crate::engine) fn maintain(&mut self) -> Option<Nanos> {
        let mut interval = None;
        if !self.has_begun {
            let answers = self.ends.iter_mut().fold(false, |any, (_, end)| end.maintain_setup() | any);
            let elapsed = clock::now().saturating_sub(self.prepared);
            interval = answers.then(|| clock::growing_interval(elapsed, SETUP_INTERVAL));
        }
        let needs_timers = self.open.iter_mut().fold(false, |any, open| open.transport.maintain() | any);
        if needs_timers { Some(CONNECTION_INTERVAL) } else { interval }
    }
}
