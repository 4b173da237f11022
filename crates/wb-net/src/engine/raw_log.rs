//! A log of individual response times: collected in preallocated memory, and passed on in chunks.

use std::sync::mpsc::{Receiver, Sender, channel};

use serde::{Deserialize, Serialize};

use super::clock::Nanos;

/// The response time of one execution of a flowop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyRecord {
    /// When it ended, on the engine's monotonic clock.
    pub ended_at: Nanos,
    pub group: u32,
    pub strand: u32,
    /// Number of the flowop in the group.
    pub flowop: u32,
    pub duration: Nanos,
}

/// Records per chunk.
const CHUNK: usize = 1 << 16;

/// The writing end of a log, owned by one executor.
#[derive(Debug)]
pub(super) struct RawLog {
    group: u32,
    chunk: Vec<LatencyRecord>,
    full: Sender<Vec<LatencyRecord>>,
    empty: Receiver<Vec<LatencyRecord>>,
}

#[derive(Debug)]
pub(super) struct RawLogReader {
    full: Receiver<Vec<LatencyRecord>>,
    empty: Sender<Vec<LatencyRecord>>,
}

pub(super) fn new_log(group: u32) -> (RawLog, RawLogReader) {
    let ((full, chunks), (recycle, empty)) = (channel(), channel());
    for _ in 0..2 {
        // Cannot fail: the receiver exists.
        let _: Result<(), _> = recycle.send(Vec::with_capacity(CHUNK));
    }
    (RawLog { group, chunk: Vec::with_capacity(CHUNK), full, empty }, RawLogReader { full: chunks, empty: recycle })
}

impl RawLog {
    #[inline]
    pub(super) fn push(&mut self, at: Nanos, strand: u32, place: u32, took: Nanos) {
        self.chunk.push(LatencyRecord { ended_at: at, group: self.group, strand, flowop: place, duration: took });
        if self.chunk.len() == CHUNK {
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        // Allocates only if the reader has not returned the last chunks: nothing is lost.
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK));
        let chunk = std::mem::replace(&mut self.chunk, next);
        // Ignored: the reader is gone when the run is aborted.
        let _: Result<(), _> = self.full.send(chunk);
    }
}

impl RawLogReader {
    pub(super) fn fetch(&self, mut handle: impl FnMut(&[LatencyRecord])) {
        while let Ok(mut chunk) = self.full.try_recv() {
            handle(&chunk);
            chunk.clear();
            let _: Result<(), _> = self.empty.send(chunk);
        }
    }
}
