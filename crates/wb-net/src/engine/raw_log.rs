//! Every response time: gathered in memory that is ready, handed over when it is full.

use std::sync::mpsc::{Receiver, Sender, channel};

use serde::{Deserialize, Serialize};

use super::clock::Nanos;

/// One execution of a flowop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyRecord {
    /// When it ended, on the site's monotonic clock.
    pub ended_at: Nanos,
    /// Which group.
    pub group: u32,
    /// Which strand of it.
    pub strand: u32,
    /// Which flowop of the group.
    pub flowop: u32,
    /// How long it took, in nanoseconds.
    pub duration: Nanos,
}

/// So many are handed over at once.
const CHUNK: usize = 1 << 16;

/// Where one executor puts its times.
#[derive(Debug)]
pub(super) struct RawLog {
    group: u32,
    chunk: Vec<LatencyRecord>,
    full: Sender<Vec<LatencyRecord>>,
    empty: Receiver<Vec<LatencyRecord>>,
}

/// Where the parts come out.
#[derive(Debug)]
pub(super) struct RawLogReader {
    full: Receiver<Vec<LatencyRecord>>,
    empty: Sender<Vec<LatencyRecord>>,
}

/// A log and its other end.
pub(super) fn new_log(group: u32) -> (RawLog, RawLogReader) {
    let ((full, parts), (back, empty)) = (channel(), channel());
    for _ in 0..2 {
        // Both ends are here.
        let _: Result<(), _> = back.send(Vec::with_capacity(CHUNK));
    }
    (RawLog { group, chunk: Vec::with_capacity(CHUNK), full, empty }, RawLogReader { full: parts, empty: back })
}

impl RawLog {
    #[inline]
    pub(super) fn push(&mut self, at: Nanos, strand: u32, place: u32, took: Nanos) {
        self.chunk.push(LatencyRecord { ended_at: at, group: self.group, strand, flowop: place, duration: took });
        if self.chunk.len() == CHUNK {
            self.flush();
        }
    }

    /// Hands over what there is.
    pub(super) fn flush(&mut self) {
        // More memory is taken only if nobody fetched the last parts: nothing is lost.
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK));
        let part = std::mem::replace(&mut self.chunk, next);
        // Nobody fetches any more when the run is given up.
        let _: Result<(), _> = self.full.send(part);
    }
}

impl RawLogReader {
    /// Gives what has been handed over to somebody.
    pub(super) fn fetch(&self, mut give: impl FnMut(&[LatencyRecord])) {
        while let Ok(mut part) = self.full.try_recv() {
            give(&part);
            part.clear();
            let _: Result<(), _> = self.empty.send(part);
        }
    }
}
