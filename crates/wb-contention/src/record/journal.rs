//! Writes events of sequences to the journal of a run, and reads them.

use std::path::PathBuf;

use serde::Deserialize;
use wb_record::{Journal, JournalEvent, JournalLine, RecordError, RunFolder};

use super::{SequenceEvent, SequenceHistory};

/// The journal of a run that is open for writing, with what it already records.
#[derive(Debug)]
pub struct SequenceJournal {
    path: PathBuf,
    journal: Journal,
    history: SequenceHistory,
}

impl SequenceJournal {
    /// Opens the journal of a run that is open for writing. An incomplete last line is recorded as such. Fails if the
    /// journal is damaged elsewhere.
    pub fn open(run: &RunFolder) -> Result<Self, RecordError> {
        let (journal, lines) = run.journal()?;
        Ok(Self { path: run.journal_path(), journal, history: fold(run, &lines)? })
    }

    /// Writes an event, durably.
    pub fn write(&mut self, event: SequenceEvent) -> Result<(), RecordError> {
        let unwritable = |error: serde_json::Error| RecordError::io("write", &self.path)(error.into());
        let change = serde_json::to_value(&event).map_err(unwritable)?;
        let line = self.journal.write(JournalEvent::Sequence { change })?;
        self.history.add(&line.time, event);
        Ok(())
    }

    pub fn history(&self) -> &SequenceHistory {
        &self.history
    }
}

/// Reads what a run records about sequences. Fails if the journal is damaged elsewhere than at its end.
pub fn read_history(run: &RunFolder) -> Result<SequenceHistory, RecordError> {
    fold(run, &run.journal_lines()?)
}

fn fold(run: &RunFolder, lines: &[JournalLine]) -> Result<SequenceHistory, RecordError> {
    let mut history = SequenceHistory::default();
    for (index, line) in lines.iter().enumerate() {
        let JournalEvent::Sequence { change } = &line.event else { continue };
        let event = SequenceEvent::deserialize(change).map_err(|error| RecordError::InvalidLine {
            path: run.journal_path(),
            line: index + 1,
            reason: format!("invalid event of a sequence ({error})"),
        })?;
        history.add(&line.time, event);
    }
    Ok(history)
}
