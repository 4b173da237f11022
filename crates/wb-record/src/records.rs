//! The records of a run, and whether its results are up to date with them.
//!
//! A `result.json` has a hash of the records that it was derived from: the journal, the definitions of its cells and of
//! its test. Artefacts of samples are not part of that hash, since the journal has the hash of each; they are checked
//! separately.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;
use wb_model::{AttemptPurpose, CellId, Sha256};
use wb_sys::contained_file;

use crate::journal::AttemptEnd;
use crate::journal::{self, ParsedJournal};
use crate::{JournalEvent, JournalLine, RecordError, RunFile, RunFolder, files};

/// The name of the file with a serial's results.
pub const RESULT_FILE: &str = "result.json";

/// The records of a run, read at one time.
#[derive(Debug)]
pub struct RunRecords {
    pub run_file: RunFile,
    /// The lines of the journal.
    pub lines: Vec<JournalLine>,
    /// The number of lines of the journal without a checksum, which earlier versions wrote: a flipped bit in them may
    /// not be found.
    pub unchecked_lines: usize,
    journal: Sha256,
}

/// Whether the results of a run are up to date with its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultState {
    /// Serials whose results are missing, or were derived from other records than the current ones.
    pub outdated: Vec<PathBuf>,
    /// Samples whose artefacts are missing or modified, in time order.
    pub damaged: Vec<DamagedSample>,
}

/// A sample with a missing or modified artefact that was not repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedSample {
    pub cell: CellId,
    /// The first such artefact, relative to the run folder.
    pub file: PathBuf,
}

impl ResultState {
    /// Whether the results are up to date.
    pub fn is_current(&self) -> bool {
        self.outdated.is_empty() && self.damaged.is_empty()
    }
}

/// The part of a `result.json` with the hash of its records.
#[derive(Deserialize)]
struct ResultHead {
    #[serde(default)]
    records_sha256: Option<Sha256>,
}

impl RunRecords {
    /// Reads the run file and the journal of a run.
    ///
    /// # Errors
    /// If one of them cannot be read or is damaged, or if the journal of a run with samples is missing.
    pub fn read(run: &RunFolder) -> Result<Self, RecordError> {
        let run_file = run.run_file()?;
        let path = run.journal_path();
        let text = run.read(&path)?.unwrap_or_default();
        let ParsedJournal { lines, unchecked, .. } = journal::parse(&path, &text)?;
        run.require_journal(&run_file, &lines)?;
        // Lines that do not affect results may follow the results, for example if the run was published.
        let whole = text.split_inclusive(|byte| *byte == b'\n').zip(&lines);
        let relevant: Vec<&[u8]> = whole.filter(|(_, line)| !line.event.is_auxiliary()).map(|(text, _)| text).collect();
        Ok(Self { run_file, journal: Sha256::digest(&relevant.concat()), lines, unchecked_lines: unchecked })
    }

    /// The hash of the journal, without the lines that do not affect results. Two runs have the same hash only if one
    /// is a copy of the other, since each line has its time.
    pub fn journal_sha256(&self) -> &Sha256 {
        &self.journal
    }

    /// The hash of the records of a serial, which is given by one of its cells.
    ///
    /// # Errors
    /// If an existing file cannot be read.
    pub fn sha256_of_serial(&self, run: &RunFolder, of: &CellId) -> Result<Sha256, RecordError> {
        let folder = run.serial_folder(of);
        let cells: BTreeSet<String> =
            self.cells().filter(|cell| run.serial_folder(cell) == folder).map(ToString::to_string).collect();
        let test = run.tests_folder().join(format!("{}.toml", of.test));
        let files = [folder.join("definition.json"), test]
            .iter()
            .map(|path| sha256_of(run, path))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Sha256::digest(format!("{}\n{files:?}\n{cells:?}", self.journal).as_bytes()))
    }

    /// Compares the results of a run with its records.
    ///
    /// An artefact counts as unmodified if its length is right and it is older than the results; any other is hashed.
    ///
    /// # Errors
    /// If an existing file cannot be read.
    pub fn result_state(&self, run: &RunFolder) -> Result<ResultState, RecordError> {
        let mut state = ResultState::default();
        let mut written: BTreeMap<PathBuf, SystemTime> = BTreeMap::new();
        for (folder, cell) in self.serials(run) {
            let path = folder.join(RESULT_FILE);
            // Results that cannot be read count as missing: they can be derived again.
            let header: Option<ResultHead> = run.read_json(&path).unwrap_or_default();
            if header.and_then(|header| header.records_sha256).as_ref() != Some(&self.sha256_of_serial(run, cell)?) {
                state.outdated.push(folder.clone());
            }
            let metadata =
                files::relative_to(run.path(), &path).and_then(|path| contained_file::metadata(run.path(), path));
            if let Ok(time) = metadata.and_then(|file| file.modified()) {
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
        self.run_file.invocations.iter().flat_map(|invocation| &invocation.cells)
    }

    /// The last completed attempt at each sample; earlier ones were repeated for a reason.
    fn samples(&self) -> impl Iterator<Item = &AttemptEnd> {
        let mut seen = BTreeSet::new();
        let completed = self.lines.iter().rev().filter_map(|line| match &line.event {
            JournalEvent::AttemptEnded(ended)
                if ended.outcome.is_completed() && ended.purpose == AttemptPurpose::Sample =>
            {
                Some(ended)
            }
            _ => None,
        });
        let last: Vec<&AttemptEnd> = completed.filter(|ended| seen.insert((&ended.cell, ended.sample))).collect();
        last.into_iter().rev()
    }
}

/// The first missing or modified artefact of a sample. `results` is the time when results were derived from it.
fn find_damage(run: &RunFolder, ended: &AttemptEnd, results: Option<SystemTime>) -> Option<DamagedSample> {
    let attempt = RunFolder::attempt_folder(&ended.cell, ended.purpose, ended.sample, ended.attempt);
    let is_intact = |artefact: &&crate::Artefact| match results {
        Some(results) => artefact.is_unchanged_since(run.path(), &attempt, results),
        None => artefact.is_intact(run.path(), &attempt),
    };
    let artefact = ended.artefacts.iter().find(|artefact| !is_intact(artefact))?;
    Some(DamagedSample { cell: ended.cell.clone(), file: attempt.join(&artefact.path) })
}

/// The hash of a file; `None` if it does not exist.
fn sha256_of(run: &RunFolder, path: &Path) -> Result<Option<Sha256>, RecordError> {
    Ok(run.read(path)?.map(|content| Sha256::digest(&content)))
}
