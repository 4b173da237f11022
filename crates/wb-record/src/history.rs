//! The attempts of a run, aggregated from the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use wb_model::{AttemptPurpose, CellId, DefinitionKey, WorkerName};

use crate::journal::{AttemptEnd, ImportedBatch};
use crate::{JournalEvent, JournalLine, RunFolder};

/// The attempts of a run by cell, in time order.
#[derive(Debug, Clone, Default)]
pub struct History {
    attempts: BTreeMap<CellId, Vec<RecordedAttempt>>,
    next_attempts: BTreeMap<(CellId, AttemptPurpose, u32), u32>,
    end_reasons: BTreeMap<CellId, String>,
    cleanup_problems: BTreeMap<CellId, Vec<String>>,
    /// The cells with attempts in the current invocation.
    current_cells: BTreeSet<CellId>,
    machine_changes: BTreeMap<CellId, Vec<MachineChange>>,
    imports: BTreeMap<CellId, Vec<ImportedBatch>>,
    stdout_bytes: u64,
    /// The last invocation that started.
    invocation: Option<u32>,
}

/// What differed on a worker's machine at the end of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineChange {
    pub worker: WorkerName,
    /// The properties that differ, each with both values.
    pub differences: Vec<String>,
}

/// An attempt that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedAttempt {
    /// The record of its end.
    pub ended: AttemptEnd,
    /// When the record was written: RFC 3339 in UTC.
    pub time: String,
    /// The number of the invocation that made it, if known.
    pub invocation: Option<u32>,
    pub run: PathBuf,
    /// Its folder, relative to the run folder.
    pub folder: PathBuf,
    /// Whether all its artefacts exist and are unmodified.
    pub intact: bool,
}

impl History {
    /// Aggregates the lines of a run's journal, and verifies the hashes of artefacts.
    pub fn new(run: &RunFolder, lines: &[JournalLine]) -> Self {
        let mut history = Self::default();
        for line in lines {
            history.add(run, line, true);
        }
        history
    }

    /// Adds one line. `check` verifies the hashes of the attempt's artefacts.
    pub fn add(&mut self, run: &RunFolder, line: &JournalLine, check: bool) {
        match &line.event {
            JournalEvent::AttemptStarted { cell, purpose, sample, attempt, .. } => {
                self.reserve_number(cell, *purpose, *sample, *attempt);
                self.end_reasons.remove(cell);
                self.current_cells.insert(cell.clone());
            }
            JournalEvent::AttemptEnded(ended) => {
                // The line of its start may have been lost.
                self.reserve_number(&ended.cell, ended.purpose, ended.sample, ended.attempt);
                let folder = RunFolder::attempt_folder(&ended.cell, ended.purpose, ended.sample, ended.attempt);
                let intact = !check || ended.artefacts.iter().all(|artefact| artefact.is_intact(run.path(), &folder));
                let outputs = ended.artefacts.iter().filter(|artefact| artefact.path.ends_with(".stdout"));
                self.stdout_bytes =
                    outputs.fold(self.stdout_bytes, |total, artefact| total.saturating_add(artefact.bytes));
                let (time, invocation) = (line.time.clone(), self.invocation);
                let attempt = RecordedAttempt {
                    ended: ended.clone(),
                    time,
                    invocation,
                    run: run.path().to_owned(),
                    folder,
                    intact,
                };
                self.attempts.entry(ended.cell.clone()).or_default().push(attempt);
            }
            JournalEvent::SamplesImported(batch) => {
                self.imports.entry(batch.cell.clone()).or_default().push(batch.clone());
            }
            JournalEvent::CellEnded { cell, reason, .. } => {
                self.end_reasons.insert(cell.clone(), reason.clone());
            }
            JournalEvent::CleanupFailed { cell, problems, .. } => {
                self.cleanup_problems.entry(cell.clone()).or_default().extend(problems.iter().cloned());
            }
            JournalEvent::InvocationStarted { invocation, .. } => {
                self.invocation = Some(*invocation);
                self.current_cells.clear();
            }
            JournalEvent::FactsChanged { worker, differences } => {
                let change = MachineChange { worker: worker.clone(), differences: differences.clone() };
                for cell in &self.current_cells {
                    self.machine_changes.entry(cell.clone()).or_default().push(change.clone());
                }
            }
            // The other events do not affect attempts.
            _ => {}
        }
    }

    fn reserve_number(&mut self, cell: &CellId, purpose: AttemptPurpose, sample: u32, attempt: u32) {
        let next = self.next_attempts.entry((cell.clone(), purpose, sample)).or_default();
        *next = (*next).max(attempt.saturating_add(1));
    }

    /// The attempts at a cell, in time order.
    pub fn attempts(&self, cell: &CellId) -> &[RecordedAttempt] {
        self.attempts.get(cell).map_or(&[], Vec::as_slice)
    }

    /// The imported samples of a cell, in time order.
    pub fn imports(&self, cell: &CellId) -> &[ImportedBatch] {
        self.imports.get(cell).map_or(&[], Vec::as_slice)
    }

    /// The total size of the recorded standard output of measured processes, in bytes.
    pub fn stdout_bytes(&self) -> u64 {
        self.stdout_bytes
    }

    /// The cells with attempts.
    pub fn cells(&self) -> impl Iterator<Item = &CellId> {
        self.attempts.keys()
    }

    /// The number of the next attempt at a sample. No number is used twice, even if its attempt never ended.
    pub fn next_attempt(&self, cell: &CellId, purpose: AttemptPurpose, sample: u32) -> u32 {
        self.next_attempts.get(&(cell.clone(), purpose, sample)).copied().unwrap_or(0)
    }

    /// The reason why a cell ended, if it has.
    pub fn end_reason(&self, cell: &CellId) -> Option<&str> {
        self.end_reasons.get(cell).map(String::as_str)
    }

    /// The problems of the teardown of a cell, a sentence each.
    pub fn cleanup_problems(&self, cell: &CellId) -> &[String] {
        self.cleanup_problems.get(cell).map_or(&[], Vec::as_slice)
    }

    /// What differed, at the end of invocations with attempts at a cell, on the machines of any workers.
    pub fn machine_changes(&self, cell: &CellId) -> &[MachineChange] {
        self.machine_changes.get(cell).map_or(&[], Vec::as_slice)
    }

    /// A key other than `key` under which the cell was attempted.
    pub fn other_key(&self, cell: &CellId, key: &DefinitionKey) -> Option<&DefinitionKey> {
        self.attempts(cell).iter().map(|attempt| &attempt.ended.key).find(|other| *other != key)
    }
}

impl RecordedAttempt {
    /// Whether it completed and its artefacts are intact, so that it is never repeated.
    pub fn is_finished(&self) -> bool {
        self.ended.outcome.is_completed() && self.intact
    }
}
