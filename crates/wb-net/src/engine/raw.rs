//! Every response time: gathered in memory that is ready, handed over when it is full.

use std::sync::mpsc::{Receiver, Sender, channel};

use serde::{Deserialize, Serialize};

use super::clock::Nanos;

/// One execution of a flowop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawTime {
    /// When it ended, on the site's monotonic clock.
    pub at: Nanos,
    /// Which group.
    pub group: u32,
    /// Which strand of it.
    pub strand: u32,
    /// Which flowop of the group.
    pub place: u32,
    /// How long it took, in nanoseconds.
    pub took: Nanos,
}

/// So many are handed over at once.
const PART: usize = 1 << 16;

/// Where one executor puts its times.
#[derive(Debug)]
pub(super) struct RawLog {
    group: u32,
    part: Vec<RawTime>,
    full: Sender<Vec<RawTime>>,
    empty: Receiver<Vec<RawTime>>,
}

/// Where the parts come out.
#[derive(Debug)]
pub(super) struct RawParts {
    full: Receiver<Vec<RawTime>>,
    empty: Sender<Vec<RawTime>>,
}

/// A log and its other end.
pub(super) fn log(group: u32) -> (RawLog, RawParts) {
    let ((full, parts), (back, empty)) = (channel(), channel());
    for _ in 0..2 {
        // Both ends are here.
        let _: Result<(), _> = back.send(Vec::with_capacity(PART));
    }
    (RawLog { group, part: Vec::with_capacity(PART), full, empty }, RawParts { full: parts, empty: back })
}

impl RawLog {
    #[inline]
    pub(super) fn add(&mut self, at: Nanos, strand: u32, place: u32, took: Nanos) {
        self.part.push(RawTime { at, group: self.group, strand, place, took });
        if self.part.len() == PART {
            self.hand_over();
        }
    }

    /// Hands over what there is.
    pub(super) fn hand_over(&mut self) {
        // More memory is taken only if nobody fetched the last parts: nothing is lost.
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(PART));
        let part = std::mem::replace(&mut self.part, next);
        // Nobody fetches any more when the run is given up.
        let _: Result<(), _> = self.full.send(part);
    }
}

impl RawParts {
    /// Gives what has been handed over to somebody.
    pub(super) fn fetch(&self, mut give: impl FnMut(&[RawTime])) {
        while let Ok(mut part) = self.full.try_recv() {
            give(&part);
            part.clear();
            let _: Result<(), _> = self.empty.send(part);
        }
    }
}
