//! What the journal adds up to: every attempt, and what is whole of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use wb_model::{CellId, DefinitionKey, Purpose};

use crate::journal::AttemptEnd;
use crate::{JournalEvent, JournalLine, RunFolder};

/// Every attempt of a run, by cell, in time order.
#[derive(Debug, Clone, Default)]
pub struct History {
    attempts: BTreeMap<CellId, Vec<RecordedAttempt>>,
    next_attempts: BTreeMap<(CellId, Purpose, u32), u32>,
    end_reasons: BTreeMap<CellId, String>,
    cleanup_problems: BTreeMap<CellId, Vec<String>>,
    stdout_bytes: u64,
}

/// An attempt that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedAttempt {
    /// How.
    pub ended: AttemptEnd,
    /// When that was written: RFC 3339 in UTC.
    pub time: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Whether all that it left is there as it was written.
    pub intact: bool,
}

impl History {
    /// Adds up the lines of a run's journal, and checks what attempts left against its hashes.
    pub fn of(run: &RunFolder, lines: &[JournalLine]) -> Self {
        let mut history = Self::default();
        for line in lines {
            history.add(run, line, true);
        }
        history
    }

    /// Adds one more line. `check` compares what an attempt left with its hashes.
    pub fn add(&mut self, run: &RunFolder, line: &JournalLine, check: bool) {
        match &line.event {
            JournalEvent::AttemptStarted { cell, purpose, sample, attempt, .. } => {
                self.reserve_number(cell, *purpose, *sample, *attempt);
                self.end_reasons.remove(cell);
            }
            JournalEvent::AttemptEnded(ended) => {
                // The line that told of its start may have been lost.
                self.reserve_number(&ended.cell, ended.purpose, ended.sample, ended.attempt);
                let folder =
                    run.path().join(RunFolder::attempt_folder(&ended.cell, ended.purpose, ended.sample, ended.attempt));
                let intact = !check || ended.artefacts.iter().all(|artefact| artefact.is_intact(&folder));
                let outputs = ended.artefacts.iter().filter(|artefact| artefact.path.ends_with(".stdout"));
                self.stdout_bytes += outputs.map(|artefact| artefact.bytes).sum::<u64>();
                let attempt = RecordedAttempt { ended: ended.clone(), time: line.time.clone(), folder, intact };
                self.attempts.entry(ended.cell.clone()).or_default().push(attempt);
            }
            JournalEvent::CellEnded { cell, reason: by, .. } => {
                self.end_reasons.insert(cell.clone(), by.clone());
            }
            JournalEvent::CleanupFailed { cell, problems, .. } => {
                self.cleanup_problems.entry(cell.clone()).or_default().extend(problems.iter().cloned());
            }
            // What is done around measuring changes no attempt.
            _ => {}
        }
    }

    fn reserve_number(&mut self, cell: &CellId, purpose: Purpose, sample: u32, attempt: u32) {
        let next = self.next_attempts.entry((cell.clone(), purpose, sample)).or_default();
        *next = (*next).max(attempt + 1);
    }

    /// The attempts at a cell, in time order.
    pub fn attempts(&self, cell: &CellId) -> &[RecordedAttempt] {
        self.attempts.get(cell).map_or(&[], Vec::as_slice)
    }

    /// How much standard output of measured processes is recorded in all attempts, in bytes.
    pub fn stdout_bytes(&self) -> u64 {
        self.stdout_bytes
    }

    /// The cells that were attempted.
    pub fn cells(&self) -> impl Iterator<Item = &CellId> {
        self.attempts.keys()
    }

    /// The number that the next attempt at a sample gets: no number is used twice, also not one whose attempt never
    /// ended.
    pub fn next_attempt(&self, cell: &CellId, purpose: Purpose, sample: u32) -> u32 {
        self.next_attempts.get(&(cell.clone(), purpose, sample)).copied().unwrap_or(0)
    }

    /// What ended a cell, if anything did.
    pub fn end_reason(&self, cell: &CellId) -> Option<&str> {
        self.end_reasons.get(cell).map(String::as_str)
    }

    /// What went wrong when the preparation of a cell was taken down, a sentence each.
    pub fn cleanup_problems(&self, cell: &CellId) -> &[String] {
        self.cleanup_problems.get(cell).map_or(&[], Vec::as_slice)
    }

    /// A key under which a cell was attempted, and that is not `key`.
    pub fn other_key(&self, cell: &CellId, key: &DefinitionKey) -> Option<&DefinitionKey> {
        self.attempts(cell).iter().map(|attempt| &attempt.ended.key).find(|other| *other != key)
    }
}

impl RecordedAttempt {
    /// Whether it ran to its end and all that it left is whole: it is never run again.
    pub fn is_finished(&self) -> bool {
        self.ended.outcome.is_completed() && self.intact
    }
}
