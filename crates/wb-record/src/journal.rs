//! The journal: one line of JSON per event, flushed to the device before the run continues.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{AttemptOutcome, CellId, DefinitionKey, Purpose, WorkerName};

use crate::steps::{
    PreparationEnd, PreparationKind, PreparationStart, ProvisioningStep, PublishStep, RebootStep, ScriptStep,
};
use crate::{Artefact, RecordError, files};

/// The prefix of a finding about another run that measured on the same machine during a sample; a description of that
/// run follows.
pub const OTHER_RUN: &str = "another run measured on this machine at the same time: ";

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JournalLine {
    /// When it was written, for people: RFC 3339 in UTC.
    pub time: String,
    /// The event.
    #[serde(flatten)]
    pub event: JournalEvent,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum JournalEvent {
    /// A controller started to work on the folder.
    InvocationStarted {
        /// The number of the invocation, from 0.
        invocation: u32,
        /// The ID of the current boot.
        boot_id: String,
    },
    /// An attempt started.
    AttemptStarted {
        /// The cell.
        cell: CellId,
        /// The key of the cell's definition.
        key: DefinitionKey,
        /// The purpose of the sample.
        purpose: Purpose,
        /// The number of the sample of that purpose, from 0.
        sample: u32,
        /// The number of the attempt at the sample, from 0.
        attempt: u32,
    },
    /// An attempt ended, and its artefacts are flushed to the device.
    AttemptEnded(AttemptEnd),
    /// A cell needs no more samples, or no more samples can be taken.
    CellEnded {
        /// The cell.
        cell: CellId,
        /// The key of the cell's definition.
        key: DefinitionKey,
        /// The reason, in words.
        reason: String,
    },
    /// The teardown of what a cell's test had prepared for all its samples failed.
    CleanupFailed {
        /// The cell.
        cell: CellId,
        /// The key of the cell's definition.
        key: DefinitionKey,
        /// The problems, a sentence each.
        problems: Vec<String>,
    },
    /// A worker's machine has other properties at the end of an invocation than those that its plan was made from.
    FactsChanged {
        /// The worker.
        worker: WorkerName,
        /// The properties that differ, each with both values.
        differences: Vec<String>,
    },
    /// The controller stopped working on the folder.
    InvocationEnded {
        /// The number of the invocation.
        invocation: u32,
        /// How it ended.
        outcome: InvocationEnd,
    },
    /// The preparation of machines for an invocation started a step.
    PreparationStarted(PreparationStart),
    /// A step of the preparation ended on a machine. Provisioning, scripts and reboots have events of their own.
    PreparationEnded(PreparationEnd),
    /// The controller stopped working on the folder before the machines were prepared and an invocation started.
    PreparationAborted {
        /// How it ended.
        outcome: InvocationEnd,
        /// The error, with secrets masked, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A host was provisioned.
    Provisioned(ProvisioningStep),
    /// A user's script ran on a worker.
    ScriptRan(ScriptStep),
    /// A reboot of a machine was requested.
    RebootStarted {
        /// The host that reboots.
        worker: WorkerName,
        /// The ID of the boot that ends.
        boot_id: String,
        /// The kernel command line of the next boot, if it is not left to the machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_line: Option<String>,
    },
    /// A reboot completed or failed.
    RebootEnded(RebootStep),
    /// The publish command ran.
    Published(PublishStep),
    /// Something happened in a sequence of contention benches.
    Sequence {
        /// What: a `SequenceEvent` of `wb-contention`, which this crate does not interpret.
        change: serde_json::Value,
    },
    /// An incomplete line that an interrupted controller has left.
    IncompleteLine {
        /// The text of the incomplete line.
        text: String,
    },
}

impl JournalEvent {
    /// Whether it is an auxiliary event, which does not affect results and may be long before the start of an
    /// invocation, or after its end.
    pub fn is_auxiliary(&self) -> bool {
        matches!(
            self,
            Self::PreparationStarted(_)
                | Self::PreparationEnded(_)
                | Self::PreparationAborted { .. }
                | Self::Provisioned(_)
                | Self::ScriptRan(_)
                | Self::RebootStarted { .. }
                | Self::RebootEnded(_)
                | Self::Published(_)
                | Self::Sequence { .. }
        )
    }

    /// Whether it belongs to the preparation of machines for an invocation.
    pub fn is_preparation(&self) -> bool {
        matches!(
            self,
            Self::PreparationStarted(_)
                | Self::PreparationEnded(_)
                | Self::Provisioned(_)
                | Self::ScriptRan(_)
                | Self::RebootStarted { .. }
                | Self::RebootEnded(_)
        )
    }

    /// Whether what it records leaves every machine as it was: connecting to hosts.
    pub fn is_without_effect(&self) -> bool {
        match self {
            Self::PreparationStarted(PreparationStart { step, .. })
            | Self::PreparationEnded(PreparationEnd { step, .. }) => *step == PreparationKind::Connecting,
            Self::PreparationAborted { .. } => true,
            _ => false,
        }
    }
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptEnd {
    /// The cell.
    pub cell: CellId,
    /// The key of the cell's definition.
    pub key: DefinitionKey,
    /// The purpose of the sample.
    pub purpose: Purpose,
    /// The number of the sample of that purpose, from 0.
    pub sample: u32,
    /// The number of the attempt at the sample, from 0.
    pub attempt: u32,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: AttemptOutcome,
    /// Its duration by the monotonic clock, in seconds: preparation, sampling and teardown.
    pub seconds: f64,
    /// The part of it during which measured processes ran, in seconds.
    pub workload_seconds: f64,
    /// The amount of work, in the test's own unit; later samples do the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<u64>,
    /// The workers that measured at the same time, if there are several; the artefacts of each are in a folder of its
    /// name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerName>,
    /// The amount of work of each worker, if there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub work_by_worker: BTreeMap<WorkerName, u64>,
    /// Disturbances from outside, with figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<String>,
    /// Findings, with figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Its artefacts.
    pub artefacts: Vec<Artefact>,
}

/// How an invocation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InvocationEnd {
    /// All its cells are finished.
    Finished,
    /// The user interrupted it.
    Interrupted,
    /// It failed.
    Failed,
}

/// A journal that is open for writing.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Journal {
    /// Opens the journal for writing. An incomplete last line is recorded as an event.
    pub fn open(path: &Path) -> Result<(Self, Vec<JournalLine>), RecordError> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = file.map_err(RecordError::io("open", path))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(RecordError::io("read", path))?;
        let ParsedJournal { mut lines, incomplete } = parse(path, &text)?;
        let whole = text.len() - incomplete.map_or(0, <[u8]>::len);
        let mut journal = Self { path: path.to_owned(), file, length: whole as u64 };
        if let Some(incomplete) = incomplete {
            let text = String::from_utf8_lossy(incomplete).into_owned();
            journal.truncate()?;
            lines.push(journal.write(JournalEvent::IncompleteLine { text })?);
        }
        Ok((journal, lines))
    }

    /// Reads a journal. An incomplete last line is ignored; an invalid line elsewhere is an error with its number.
    pub fn read(path: &Path) -> Result<Vec<JournalLine>, RecordError> {
        let text = std::fs::read(path).map_err(RecordError::io("read", path))?;
        Self::parse(path, &text)
    }

    /// Reads the text of the journal at `path`, as [`Self::read`] does.
    pub(crate) fn parse(path: &Path, text: &[u8]) -> Result<Vec<JournalLine>, RecordError> {
        Ok(parse(path, text)?.lines)
    }

    /// Writes an event and flushes it to the device. A partially written line is removed again.
    pub fn write(&mut self, event: JournalEvent) -> Result<JournalLine, RecordError> {
        let line = JournalLine { time: jiff::Timestamp::now().to_string(), event };
        let text = files::mask_declared_in(&line).and_then(|masked| match masked {
            Some(masked) => serde_json::to_vec(&masked),
            None => serde_json::to_vec(&line),
        });
        let mut text = text.map_err(|error| RecordError::Io {
            operation: "write",
            path: self.path.clone(),
            source: error.into(),
        })?;
        text.push(b'\n');
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // A partial line would be taken for an interrupted one; removing it fails only if the device is gone.
            let _ = self.truncate();
            return Err(RecordError::Io { operation: "write", path: self.path.clone(), source });
        }
        self.length += text.len() as u64;
        Ok(line)
    }

    /// Truncates the file to the end of the last complete line.
    fn truncate(&mut self) -> Result<(), RecordError> {
        let cut = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::End(0)).map(drop));
        cut.map_err(RecordError::io("write", &self.path))
    }
}

/// The complete lines of a journal, and an incomplete last line.
struct ParsedJournal<'a> {
    lines: Vec<JournalLine>,
    incomplete: Option<&'a [u8]>,
}

/// Parses a journal. Complete lines end in a line feed; the text after the last one is an incomplete line.
fn parse<'a>(path: &Path, text: &'a [u8]) -> Result<ParsedJournal<'a>, RecordError> {
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (whole, incomplete) = text.split_at(end);
    let lines = whole.split_inclusive(|byte| *byte == b'\n').enumerate().map(|(index, line)| {
        serde_json::from_slice(line).map_err(|error| RecordError::InvalidLine {
            path: path.to_owned(),
            line: index + 1,
            reason: format!("incomplete or invalid journal line ({error})"),
        })
    });
    Ok(ParsedJournal {
        lines: lines.collect::<Result<_, _>>()?,
        incomplete: (!incomplete.is_empty()).then_some(incomplete),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn started(invocation: u32) -> JournalEvent {
        JournalEvent::InvocationStarted { invocation, boot_id: "b".to_owned() }
    }

    #[test]
    fn an_incomplete_last_line_is_recorded_as_an_event() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let (mut journal, lines) = Journal::open(&path).unwrap();
        assert!(lines.is_empty());
        journal.write(started(0)).unwrap();
        drop(journal);
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"time\":\"2020");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(Journal::read(&path).unwrap().len(), 1);
        let (mut journal, lines) = Journal::open(&path).unwrap();
        assert_eq!(lines[1].event, JournalEvent::IncompleteLine { text: "{\"time\":\"2020".to_owned() });
        journal.write(started(1)).unwrap();
        let events: Vec<JournalEvent> = Journal::read(&path).unwrap().into_iter().map(|line| line.event).collect();
        assert_eq!(events[2], started(1));
    }

    #[test]
    fn an_incomplete_line_in_the_middle_is_an_error_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let (mut journal, _) = Journal::open(&path).unwrap();
        for invocation in 0..3 {
            journal.write(started(invocation)).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let second = text.lines().nth(1).unwrap();
        std::fs::write(&path, text.replace(second, &second[..20])).unwrap();
        let error = Journal::read(&path).unwrap_err();
        assert!(error.to_string().contains("journal.jsonl:2:"), "{error}");
    }

    #[test]
    fn a_full_device_is_an_error_with_a_hint() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut journal = Journal { path: "/dev/full".into(), file, length: 0 };
        let error = journal.write(started(0)).unwrap_err();
        assert!(error.help().is_some_and(|help| help.contains("free some space")), "{error}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(text: Vec<u8>) {
            let _ = parse(Path::new("j"), &text);
        }

        #[test]
        fn a_truncation_loses_at_most_the_line_that_it_cuts(cut in 0usize..400) {
            let line = |invocation| serde_json::to_string(&JournalLine { time: "t".into(), event: started(invocation) }).unwrap() + "\n";
            let text: String = (0..5).map(line).collect();
            let cut = cut.min(text.len());
            let whole = text[..cut].matches('\n').count();
            prop_assert_eq!(parse(Path::new("j"), &text.as_bytes()[..cut]).unwrap().lines.len(), whole);
        }
    }
}
