//! The records of a run, and whether results are those of them.
//!
//! A `result.json` carries a hash of what its figures come from: the journal, the definitions of its cells and of its
//! test. Files of samples are not part of it, since the journal has the hash of each; they are looked at themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;
use wb_model::{CellId, Purpose, Sha256};

use crate::journal::AttemptEnd;
use crate::{Journal, JournalEvent, JournalLine, RecordError, RunFile, RunFolder, files};

/// The name of a serial's file of results.
pub const RESULT_FILE: &str = "result.json";

/// What a run has recorded, read at one time.
#[derive(Debug)]
pub struct RunRecords {
    /// What was asked for.
    pub head: RunFile,
    /// What happened.
    pub lines: Vec<JournalLine>,
    journal: Sha256,
}

/// Whether the results of a run are those of its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultState {
    /// Serials whose results are missing, or were derived from other records than there are now.
    pub outdated: Vec<PathBuf>,
    /// Samples whose files are not as they were written, in time order.
    pub damaged: Vec<DamagedSample>,
}

/// A sample one of whose files is not as it was written, and that was not taken again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedSample {
    /// Of which cell.
    pub cell: CellId,
    /// The first such file, relative to the run's folder.
    pub file: PathBuf,
}

impl ResultState {
    /// Whether the results can be taken as they are.
    pub fn is_current(&self) -> bool {
        self.outdated.is_empty() && self.damaged.is_empty()
    }
}

/// The part of a `result.json` that says what it was derived from.
#[derive(Deserialize)]
struct ResultHead {
    #[serde(default)]
    records_sha256: Option<Sha256>,
}

impl RunRecords {
    /// Reads a run's head and its journal.
    ///
    /// # Errors
    /// When one of them cannot be read or is damaged, and when the journal of a run with samples is gone.
    pub fn read(run: &RunFolder) -> Result<Self, RecordError> {
        let head = run.run_file()?;
        let path = run.journal_path();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(RecordError::io("read", &path)(error)),
        };
        let parsed = Journal::parse(&path, &text)?;
        run.require_journal(&head, &parsed)?;
        // Lines that change no result may follow the results: the run was published, say.
        let whole = text.split_inclusive(|byte| *byte == b'\n').zip(&parsed);
        let relevant: Vec<&[u8]> = whole.filter(|(_, line)| !line.event.is_auxiliary()).map(|(text, _)| text).collect();
        Ok(Self { head, journal: Sha256::of(&relevant.concat()), lines: parsed })
    }

    /// The hash of the journal, without the lines that change no result. Runs have the same only if one is a copy of the
    /// other, since each line has its time.
    pub fn journal_sha256(&self) -> &Sha256 {
        &self.journal
    }

    /// The hash of what the results of a serial, named by one of its cells, come from.
    ///
    /// # Errors
    /// When a file that is there cannot be read.
    pub fn sha256_of_serial(&self, run: &RunFolder, of: &CellId) -> Result<Sha256, RecordError> {
        let folder = run.serial_folder(of);
        let cells: BTreeSet<String> =
            self.cells().filter(|cell| run.serial_folder(cell) == folder).map(ToString::to_string).collect();
        let test = run.tests_folder().join(format!("{}.toml", of.test));
        let files =
            [folder.join("definition.json"), test].iter().map(|path| sha256_of(path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Sha256::of(format!("{}\n{files:?}\n{cells:?}", self.journal).as_bytes()))
    }

    /// Compares the results in a run's folder with its records.
    ///
    /// A file of a sample is taken as unchanged if it has its length and is not younger than the results; all others are
    /// hashed.
    ///
    /// # Errors
    /// When a file that is there cannot be read.
    pub fn result_state(&self, run: &RunFolder) -> Result<ResultState, RecordError> {
        let mut state = ResultState::default();
        let mut written: BTreeMap<PathBuf, SystemTime> = BTreeMap::new();
        for (folder, cell) in self.serials(run) {
            let path = folder.join(RESULT_FILE);
            // Results that cannot be read are none: they can be derived again.
            let head: Option<ResultHead> = files::read_json(&path).unwrap_or_default();
            if head.and_then(|head| head.records_sha256).as_ref() != Some(&self.sha256_of_serial(run, cell)?) {
                state.outdated.push(folder.clone());
            }
            if let Ok(time) = fs::metadata(&path).and_then(|file| file.modified()) {
                written.insert(folder, time);
            }
        }
        let results_of = |ended: &AttemptEnd| written.get(&run.serial_folder(&ended.cell)).copied();
        state.damaged = self.samples().filter_map(|ended| find_damage(run, ended, results_of(ended))).collect();
        Ok(state)
    }

    /// The folder of each serial of the run, with one of its cells.
    pub fn serials(&self, run: &RunFolder) -> BTreeMap<PathBuf, &CellId> {
        let mut serials = BTreeMap::new();
        for cell in self.cells() {
            serials.entry(run.serial_folder(cell)).or_insert(cell);
        }
        serials
    }

    fn cells(&self) -> impl Iterator<Item = &CellId> {
        self.head.entries.iter().flat_map(|entry| &entry.cells)
    }

    /// The last completed attempt at each sample: earlier ones have been taken again for a reason.
    fn samples(&self) -> impl Iterator<Item = &AttemptEnd> {
        let mut seen = BTreeSet::new();
        let completed = self.lines.iter().rev().filter_map(|line| match &line.event {
            JournalEvent::AttemptEnded(ended) if ended.outcome.is_completed() && ended.purpose == Purpose::Sample => {
                Some(ended)
            }
            _ => None,
        });
        let last: Vec<&AttemptEnd> = completed.filter(|ended| seen.insert((&ended.cell, ended.sample))).collect();
        last.into_iter().rev()
    }
}

/// The first file of a sample that is not as it was written. `results` is when results were derived from it.
fn find_damage(run: &RunFolder, ended: &AttemptEnd, results: Option<SystemTime>) -> Option<DamagedSample> {
    let attempt = RunFolder::attempt_folder(&ended.cell, ended.purpose, ended.sample, ended.attempt);
    let folder = run.path().join(&attempt);
    let is_whole = |artefact: &&crate::Artefact| match results {
        Some(results) => artefact.is_unchanged_since(&folder, results),
        None => artefact.is_intact(&folder),
    };
    let artefact = ended.artefacts.iter().find(|artefact| !is_whole(artefact))?;
    Some(DamagedSample { cell: ended.cell.clone(), file: attempt.join(&artefact.path) })
}

/// The hash of a file; none where there is none.
fn sha256_of(path: &Path) -> Result<Option<Sha256>, RecordError> {
    match fs::File::open(path).and_then(Sha256::of_reader) {
        Ok(sha256) => Ok(Some(sha256)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RecordError::io("read", path)(error)),
    }
}
