//! The journal: one line of JSON per event, flushed to the device before the run continues.
//!
//! A line ends in the CRC-32 of everything before it, so that a flipped bit is found and named. Lines of earlier
//! versions have none.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use wb_model::imported::ImportedSamples;
use wb_model::{AttemptOutcome, AttemptPurpose, CellId, DefinitionKey, Sha256, WorkerName};
use wb_sys::contained_file;

use crate::steps::{
    PreparationEnd, PreparationKind, PreparationStart, ProvisioningStep, PublishStep, RebootStep, ScriptStep,
};
use crate::{Artefact, RecordError, checksum, files};

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = add_checksum)]
pub struct JournalLine {
    /// When it was written, for people: RFC 3339 in UTC.
    pub time: String,
    /// The event.
    #[serde(flatten)]
    pub event: JournalEvent,
}

/// Adds the checksum to the schema of a line. It is one of the text, so it is no field of the type.
fn add_checksum(schema: &mut Schema) {
    let checksum = json_schema!({
        "description": "The CRC-32 of the text of the line before this field, which is the last, in eight hexadecimal \
                        digits. Lines of earlier versions have none.",
        "type": "string",
        "pattern": "^[0-9a-f]{8}$"
    });
    let properties = schema.ensure_object().entry("properties").or_insert_with(|| serde_json::json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert("crc32".to_owned(), checksum.to_value());
    }
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
        purpose: AttemptPurpose,
        /// The number of the sample of that purpose, from 0.
        sample: u32,
        /// The number of the attempt at the sample, from 0.
        attempt: u32,
    },
    /// An attempt ended, and its artefacts are flushed to the device.
    AttemptEnded(AttemptEnd),
    /// Samples of a cell were imported from a file.
    SamplesImported(ImportedBatch),
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
    /// The paths of the artefacts of an attempt.
    fn artefact_paths(&self) -> impl Iterator<Item = &str> {
        let artefacts = match self {
            Self::AttemptEnded(ended) => &ended.artefacts[..],
            _ => &[],
        };
        artefacts.iter().map(|artefact| artefact.path.as_str())
    }

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

    /// Whether the recorded step leaves every machine as it was: connecting to hosts.
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
    pub purpose: AttemptPurpose,
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

/// Samples of a cell that were imported from one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedBatch {
    /// The cell.
    pub cell: CellId,
    /// The key of the cell's definition.
    pub key: DefinitionKey,
    /// The hash of the file, of which the run may have a copy in `imported/SHA256`.
    pub file: Sha256,
    /// The number of the first sample in the cell; the others follow.
    pub first_sample: u32,
    /// The provenance of the figures: host, kernel, versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provenance: BTreeMap<String, String>,
    /// The samples.
    pub samples: ImportedSamples,
}

impl ImportedBatch {
    /// The folder of the file's copy, relative to the run folder.
    pub fn folder(&self) -> PathBuf {
        Path::new(IMPORTED_FOLDER).join(self.file.as_str())
    }

    /// The number after that of the last sample.
    pub fn end(&self) -> u32 {
        self.first_sample.saturating_add(self.samples.count)
    }
}

/// The folder of copies of imported files.
pub const IMPORTED_FOLDER: &str = "imported";

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
    /// Opens the journal of the run folder `run` for writing. An incomplete last line is recorded as an event.
    pub fn open(run: &Path, path: &Path) -> Result<(Self, Vec<JournalLine>), RecordError> {
        let text = files::read(run, path)?.unwrap_or_default();
        let ParsedJournal { mut lines, incomplete, .. } = parse(path, &text)?;
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(RecordError::io("open", path))?;
        let whole = text.len() - incomplete.map_or(0, <[u8]>::len);
        let mut journal = Self { path: path.to_owned(), file, length: whole as u64 };
        if let Some(incomplete) = incomplete {
            let text = String::from_utf8_lossy(incomplete).into_owned();
            journal.truncate()?;
            lines.push(journal.write(JournalEvent::IncompleteLine { text })?);
        }
        Ok((journal, lines))
    }

    /// Reads the journal of the run folder `run`. An incomplete last line is ignored; an invalid line elsewhere is an
    /// error with its number.
    pub fn read(run: &Path, path: &Path) -> Result<Vec<JournalLine>, RecordError> {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        let text = files::read(run, path)?.ok_or_else(not_found).map_err(RecordError::io("read", path))?;
        Ok(parse(path, &text)?.lines)
    }

    /// Writes an event and flushes it to the device. A partially written line is removed again.
    pub fn write(&mut self, event: JournalEvent) -> Result<JournalLine, RecordError> {
        let line = JournalLine { time: jiff::Timestamp::now().to_string(), event };
        let text = self.text_of(&line)?;
        self.append(&text)?;
        Ok(line)
    }

    /// Writes several events, and flushes them to the device together.
    pub fn write_all(&mut self, events: impl IntoIterator<Item = JournalEvent>) -> Result<(), RecordError> {
        let time = jiff::Timestamp::now().to_string();
        let mut text = Vec::new();
        for event in events {
            text.extend(self.text_of(&JournalLine { time: time.clone(), event })?);
        }
        self.append(&text)
    }

    /// The text of a line, with declared secrets masked and its checksum.
    fn text_of(&self, line: &JournalLine) -> Result<Vec<u8>, RecordError> {
        let text = files::mask_declared_in(line).and_then(|masked| match masked {
            Some(masked) => serde_json::to_vec(&masked),
            None => serde_json::to_vec(line),
        });
        let text = text.map_err(io::Error::from).map_err(RecordError::io("write", &self.path))?;
        Ok(checksum::seal(text))
    }

    fn append(&mut self, text: &[u8]) -> Result<(), RecordError> {
        self.require_in_place()?;
        let written = self.file.write_all(text).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // A partial line would be taken for an interrupted one; removing it fails only if the device is gone.
            let _ = self.truncate();
            return Err(RecordError::io("write", &self.path)(source));
        }
        self.length += text.len() as u64;
        Ok(())
    }

    /// Requires that the journal is where it was opened. Whatever is recorded next would be elsewhere, if the run
    /// folder was moved or removed meanwhile.
    fn require_in_place(&self) -> Result<(), RecordError> {
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let opened = self.file.metadata().map(identity).map_err(RecordError::io("read", &self.path))?;
        match fs::metadata(&self.path).map(identity) {
            Ok(found) if found == opened => Ok(()),
            _ => Err(RecordError::Moved(self.path.clone())),
        }
    }

    /// Truncates the file to the end of the last complete line.
    fn truncate(&mut self) -> Result<(), RecordError> {
        let cut = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::End(0)).map(drop));
        cut.map_err(RecordError::io("write", &self.path))
    }
}

/// The complete lines of a journal, and an incomplete last line.
pub(crate) struct ParsedJournal<'a> {
    pub(crate) lines: Vec<JournalLine>,
    /// The number of lines without a checksum.
    pub(crate) unchecked: usize,
    incomplete: Option<&'a [u8]>,
}

/// Parses a journal. Complete lines end in a line feed; the text after the last one is an incomplete line.
pub(crate) fn parse<'a>(path: &Path, text: &'a [u8]) -> Result<ParsedJournal<'a>, RecordError> {
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
    let (whole, incomplete) = text.split_at(end);
    let mut parsed =
        ParsedJournal { lines: Vec::new(), unchecked: 0, incomplete: (!incomplete.is_empty()).then_some(incomplete) };
    for line in whole.split_inclusive(|byte| *byte == b'\n') {
        let number = parsed.lines.len() + 1;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let (line, is_checked) = parse_line(line).map_err(|reason| invalid_line(path, number, reason))?;
        parsed.lines.push(line);
        parsed.unchecked += usize::from(!is_checked);
    }
    if incomplete.split_last().is_some_and(|(_, line)| checksum::verify(line) == Some(true)) {
        // A write ends anywhere, but what follows a whole line is a line feed.
        return Err(invalid_line(path, parsed.lines.len() + 1, "its line feed was modified".to_owned()));
    }
    Ok(parsed)
}

/// Parses a line without its line feed, and returns whether it has a checksum. An error is the reason.
fn parse_line(text: &[u8]) -> Result<(JournalLine, bool), String> {
    let is_checked = match checksum::verify(text) {
        Some(false) => return Err("the line does not match its checksum".to_owned()),
        checked => checked.is_some(),
    };
    let line: JournalLine =
        serde_json::from_slice(text).map_err(|error| format!("incomplete or invalid journal line ({error})"))?;
    for path in line.event.artefact_paths() {
        // The run may come from somebody else.
        contained_file::require_relative(Path::new(path))
            .map_err(|error| format!("invalid path `{}` of an artefact: {error}", path.escape_default()))?;
    }
    if let JournalEvent::SamplesImported(batch) = &line.event {
        batch.samples.check().map_err(|reason| format!("invalid imported samples: {reason}"))?;
    }
    Ok((line, is_checked))
}

fn invalid_line(path: &Path, line: usize, reason: String) -> RecordError {
    RecordError::InvalidLine { path: path.to_owned(), line, reason }
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
        let (mut journal, lines) = Journal::open(folder.path(), &path).unwrap();
        assert!(lines.is_empty());
        journal.write(started(0)).unwrap();
        drop(journal);
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"time\":\"2020");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(Journal::read(folder.path(), &path).unwrap().len(), 1);
        let (mut journal, lines) = Journal::open(folder.path(), &path).unwrap();
        assert_eq!(lines[1].event, JournalEvent::IncompleteLine { text: "{\"time\":\"2020".to_owned() });
        journal.write(started(1)).unwrap();
        let events: Vec<JournalEvent> =
            Journal::read(folder.path(), &path).unwrap().into_iter().map(|line| line.event).collect();
        assert_eq!(events[2], started(1));
    }

    #[test]
    fn an_incomplete_line_in_the_middle_is_an_error_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let (mut journal, _) = Journal::open(folder.path(), &path).unwrap();
        for invocation in 0..3 {
            journal.write(started(invocation)).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let second = text.lines().nth(1).unwrap();
        std::fs::write(&path, text.replace(second, &second[..20])).unwrap();
        let error = Journal::read(folder.path(), &path).unwrap_err();
        assert!(error.to_string().contains("journal.jsonl:2:"), "{error}");
    }

    #[test]
    fn a_full_device_is_an_error_with_a_hint() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut journal = Journal { path: "/dev/full".into(), file, length: 0 };
        let error = journal.write(started(0)).unwrap_err();
        assert!(error.help().is_some_and(|help| help.contains("free some space")), "{error}");
    }

    /// A journal with an event of each kind that affects results, and texts with characters that JSON escapes.
    fn written_journal(folder: &Path) -> Vec<u8> {
        let path = folder.join("journal.jsonl");
        let (mut journal, _) = Journal::open(folder, &path).unwrap();
        let cell: CellId = "Localhost/fio/0000:rw=read".parse().unwrap();
        let key: DefinitionKey = serde_json::from_value("0123456789abcdef".into()).unwrap();
        journal.write(started(0)).unwrap();
        let artefact = Artefact { path: "out.txt".to_owned(), bytes: 3, sha256: Sha256::digest(b"abc") };
        journal
            .write(JournalEvent::AttemptEnded(AttemptEnd {
                cell: cell.clone(),
                key: key.clone(),
                purpose: AttemptPurpose::Sample,
                sample: 0,
                attempt: 1,
                outcome: AttemptOutcome::Crashed { status: "exit status 1: \"*JR\"\n".to_owned() },
                seconds: 1.5,
                workload_seconds: 0.25,
                work: Some(64),
                workers: Vec::new(),
                work_by_worker: BTreeMap::new(),
                disturbances: vec!["steal 12.5 %".to_owned()],
                findings: Vec::new(),
                artefacts: vec![artefact],
            }))
            .unwrap();
        journal.write(JournalEvent::CellEnded { cell, key, reason: "done".to_owned() }).unwrap();
        std::fs::read(&path).unwrap()
    }

    #[test]
    fn a_flipped_bit_is_named_with_its_line_or_changes_no_event() {
        let folder = tempfile::tempdir().unwrap();
        let text = written_journal(folder.path());
        let path = Path::new("journal.jsonl");
        let lines = parse(path, &text).unwrap().lines;
        let mut named = 0;
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let number = 1 + text[..bit / 8].iter().filter(|byte| **byte == b'\n').count();
            match parse(path, &flipped) {
                Err(RecordError::InvalidLine { line, .. }) => {
                    assert_eq!(line, number, "bit {bit}");
                    named += 1;
                }
                Err(error) => panic!("bit {bit}: {error}"),
                // Only the name of the checksum itself has no meaning for the events.
                Ok(parsed) => assert_eq!((parsed.lines, parsed.unchecked), (lines.clone(), 1), "bit {bit}"),
            }
        }
        assert!(named > (text.len() - 3 * "crc32".len()) * 8 - 1, "{named} of {} bits", text.len() * 8);
    }

    #[test]
    fn lines_of_earlier_versions_have_no_checksum_and_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let text = String::from_utf8(written_journal(folder.path())).unwrap();
        let without = |line: &str| format!("{}}}\n", line.rsplit_once(",\"crc32\"").unwrap().0);
        let old: String = text.lines().map(without).collect();
        let path = Path::new("journal.jsonl");
        let (old, new) = (parse(path, old.as_bytes()).unwrap(), parse(path, text.as_bytes()).unwrap());
        assert_eq!((old.lines, old.unchecked, new.unchecked), (new.lines, 3, 0));
    }

    #[test]
    fn an_artefact_outside_of_its_attempt_is_an_error_with_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let text = String::from_utf8(written_journal(folder.path())).unwrap();
        let (object, _) = text.lines().nth(1).unwrap().rsplit_once(",\"crc32\"").unwrap();
        for path in ["/dev/zero", "../../x", "a/../../x", ""] {
            let line = checksum::seal(format!("{}}}", object.replace("out.txt", path)).into_bytes());
            let error = parse(Path::new("journal.jsonl"), &line).err().unwrap().to_string();
            assert!(error.starts_with(&format!("journal.jsonl:1: invalid path `{path}`")), "{error}");
        }
    }

    #[test]
    fn only_a_regular_file_is_a_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        for target in ["/dev/zero", "/dev/null"] {
            std::os::unix::fs::symlink(target, &path).unwrap();
            assert!(Journal::read(folder.path(), &path).is_err());
            assert!(Journal::open(folder.path(), &path).is_err());
            std::fs::remove_file(&path).unwrap();
        }
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
