//! The journal: one line of JSON per event, flushed to the device before anything else happens.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{AttemptOutcome, CellId, DefinitionKey, Purpose, WorkerName};

use crate::steps::{ProvisioningStep, PublishStep, RebootStep, ScriptStep};
use crate::{Artefact, RecordError, files};

/// How the finding of a sample begins during which another run measured on its machine; what that run is follows.
pub const OTHER_RUN: &str = "another run measured on this machine at the same time: ";

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JournalLine {
    /// When it was written, for people: RFC 3339 in UTC.
    pub time: String,
    /// What happened.
    #[serde(flatten)]
    pub event: JournalEvent,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum JournalEvent {
    /// A controller began to work on the folder.
    EntryStarted {
        /// Its number, from 0.
        entry: u32,
        /// The boot it works in.
        boot_id: String,
    },
    /// An attempt began.
    AttemptStarted {
        /// At which cell.
        cell: CellId,
        /// As it is defined.
        key: DefinitionKey,
        /// What for.
        purpose: Purpose,
        /// Which sample of that purpose, from 0.
        sample: u32,
        /// Which attempt at it, from 0.
        attempt: u32,
    },
    /// An attempt ended, and what it left is on the device.
    AttemptEnded(AttemptEnd),
    /// No more samples of a cell are wanted, or none can be had.
    CellEnded {
        /// Which cell.
        cell: CellId,
        /// As it is defined.
        key: DefinitionKey,
        /// What ended it, in words.
        reason: String,
    },
    /// What a cell's test prepared for all its samples was taken down, and something went wrong with that.
    CleanupFailed {
        /// Which cell.
        cell: CellId,
        /// As it is defined.
        key: DefinitionKey,
        /// What, a sentence each.
        problems: Vec<String>,
    },
    /// The controller stopped working on the folder.
    EntryEnded {
        /// Its number.
        entry: u32,
        /// How.
        outcome: EntryEnd,
    },
    /// A host was provisioned.
    Provisioned(ProvisioningStep),
    /// A script of the user's ran on a worker.
    ScriptRan(ScriptStep),
    /// A machine was asked to reboot.
    RebootStarted {
        /// Which.
        worker: WorkerName,
        /// The boot that is to end.
        boot_id: String,
        /// What its kernel is started with, where that is not left to the machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_line: Option<String>,
    },
    /// A reboot came to its end.
    RebootEnded(RebootStep),
    /// The publish command ran.
    Published(PublishStep),
    /// The rest of a line that an earlier controller could not finish.
    TornTail {
        /// What there was of it.
        text: String,
    },
}

impl JournalEvent {
    /// Whether it is about something that is done around measuring, which changes no result: it may be long before an
    /// entry's start, or after its end.
    pub fn is_auxiliary(&self) -> bool {
        matches!(
            self,
            Self::Provisioned(_)
                | Self::ScriptRan(_)
                | Self::RebootStarted { .. }
                | Self::RebootEnded(_)
                | Self::Published(_)
        )
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptEnd {
    /// At which cell.
    pub cell: CellId,
    /// As it is defined.
    pub key: DefinitionKey,
    /// What for.
    pub purpose: Purpose,
    /// Which sample of that purpose, from 0.
    pub sample: u32,
    /// Which attempt at it, from 0.
    pub attempt: u32,
    /// What happened.
    #[serde(flatten)]
    pub outcome: AttemptOutcome,
    /// How long it took by the monotonic clock, in seconds: preparing, sampling, taking down.
    pub seconds: f64,
    /// Of that, how long measured processes ran, in seconds.
    pub workload_seconds: f64,
    /// The work that was done, in the test's own count: later samples do the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<u64>,
    /// The workers that measured at the same time, where there are several: each left its files in a folder of its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerName>,
    /// The work of each of several workers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub work_by_worker: BTreeMap<WorkerName, u64>,
    /// What disturbed it from outside, with figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<String>,
    /// What was noticed, with figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The files it left.
    pub artefacts: Vec<Artefact>,
}

/// How a controller stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EntryEnd {
    /// With all that it was asked for.
    Finished,
    /// Because the user asked it to.
    Interrupted,
    /// Because it could not go on.
    Failed,
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Journal {
    /// Opens the journal for writing. A torn last line is kept as an event of its own.
    pub fn open(path: &Path) -> Result<(Self, Vec<JournalLine>), RecordError> {
        let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = opened.map_err(RecordError::io("open", path))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(RecordError::io("read", path))?;
        let ParsedJournal { mut lines, torn } = parse(path, &text)?;
        let whole = text.len() - torn.map_or(0, <[u8]>::len);
        let mut journal = Self { path: path.to_owned(), file, length: whole as u64 };
        if let Some(torn) = torn {
            let text = String::from_utf8_lossy(torn).into_owned();
            journal.truncate()?;
            lines.push(journal.write(JournalEvent::TornTail { text })?);
        }
        Ok((journal, lines))
    }

    /// Reads a journal. A torn last line is passed over; one elsewhere is an error that names it.
    pub fn read(path: &Path) -> Result<Vec<JournalLine>, RecordError> {
        let text = std::fs::read(path).map_err(RecordError::io("read", path))?;
        Self::parse(path, &text)
    }

    /// Reads the text of the journal at `path`, as [`Self::read`] does.
    pub(crate) fn parse(path: &Path, text: &[u8]) -> Result<Vec<JournalLine>, RecordError> {
        Ok(parse(path, text)?.lines)
    }

    /// Writes an event and flushes it to the device. What could not be written whole is taken back.
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
            // A half line would be taken for a torn one; taking it back can only fail if the device is gone.
            let _ = self.truncate();
            return Err(RecordError::Io { operation: "write", path: self.path.clone(), source });
        }
        self.length += text.len() as u64;
        Ok(line)
    }

    fn truncate(&mut self) -> Result<(), RecordError> {
        let cut = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::End(0)).map(drop));
        cut.map_err(RecordError::io("write", &self.path))
    }
}

struct ParsedJournal<'a> {
    lines: Vec<JournalLine>,
    torn: Option<&'a [u8]>,
}

/// Whole lines end in a line feed: what comes after the last one is torn.
fn parse<'a>(path: &Path, text: &'a [u8]) -> Result<ParsedJournal<'a>, RecordError> {
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (whole, torn) = text.split_at(end);
    let lines = whole.split_inclusive(|byte| *byte == b'\n').enumerate().map(|(index, line)| {
        serde_json::from_slice(line).map_err(|error| RecordError::Torn {
            path: path.to_owned(),
            line: index + 1,
            why: format!("no whole line of a journal ({error})"),
        })
    });
    Ok(ParsedJournal { lines: lines.collect::<Result<_, _>>()?, torn: (!torn.is_empty()).then_some(torn) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn started(entry: u32) -> JournalEvent {
        JournalEvent::EntryStarted { entry, boot_id: "b".to_owned() }
    }

    #[test]
    fn a_torn_end_is_kept_as_an_event() {
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
        assert_eq!(lines[1].event, JournalEvent::TornTail { text: "{\"time\":\"2020".to_owned() });
        journal.write(started(1)).unwrap();
        let events: Vec<JournalEvent> = Journal::read(&path).unwrap().into_iter().map(|line| line.event).collect();
        assert_eq!(events[2], started(1));
    }

    #[test]
    fn a_torn_line_in_the_middle_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let (mut journal, _) = Journal::open(&path).unwrap();
        for entry in 0..3 {
            journal.write(started(entry)).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let second = text.lines().nth(1).unwrap();
        std::fs::write(&path, text.replace(second, &second[..20])).unwrap();
        let error = Journal::read(&path).unwrap_err();
        assert!(error.to_string().contains("journal.jsonl:2:"), "{error}");
    }

    #[test]
    fn a_full_device_is_an_error_with_a_way_out() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut journal = Journal { path: "/dev/full".into(), file, length: 0 };
        let error = journal.write(started(0)).unwrap_err();
        assert!(error.to_string().contains("free some space"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text: Vec<u8>) {
            let _ = parse(Path::new("j"), &text);
        }

        #[test]
        fn any_cut_loses_at_most_the_line_it_is_in(cut in 0usize..400) {
            let line = |entry| serde_json::to_string(&JournalLine { time: "t".into(), event: started(entry) }).unwrap() + "\n";
            let text: String = (0..5).map(line).collect();
            let cut = cut.min(text.len());
            let whole = text[..cut].matches('\n').count();
            prop_assert_eq!(parse(Path::new("j"), &text.as_bytes()[..cut]).unwrap().lines.len(), whole);
        }
    }
}
