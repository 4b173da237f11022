//! Import of result files into a run folder.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use wb_model::{ProfileName, Sha256, TestName};
use wb_record::{History, RunFolder};

use crate::archive::{ArchivedCopy, copy_note};
use crate::files::{Candidate, Candidates, find_candidates, read_bytes};
use crate::formats::phoronix;
use crate::record::record;
use crate::runperf::{ResultLocation, is_exception_file, locate_result, read_error_cell};
use crate::staging::{AddedCounts, SourceFile, StagingArea};
use crate::{Format, ImportError, ReadError, ReadOptions, json, read};

/// What is to be imported, and where it is recorded.
#[derive(Debug)]
pub struct ImportRequest<'a> {
    /// The run folder; made, or extended.
    pub folder: &'a Path,
    /// Files, and folders of files.
    pub paths: &'a [PathBuf],
    /// The format of all of them; without, each shows its own.
    pub format: Option<Format>,
    /// What cells are called.
    pub names: NameOverrides,
    /// Whether iterations that failed (`NAME-failN`) and results under non-numeric serials are imported too.
    pub include_incorrect: bool,
    /// Whether a file that cannot be imported ends it.
    pub strict: bool,
    /// The command as it was typed, secrets masked.
    pub command: Vec<String>,
    /// What the user says of the run.
    pub metadata: BTreeMap<String, String>,
    /// This program's version.
    pub version: &'a str,
    /// Hash of this program's binary.
    pub program_sha256: String,
    /// The boot that this program runs in.
    pub boot_id: String,
}

/// What cells are called, where it is not as their files say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameOverrides {
    /// The test.
    pub test: Option<TestName>,
    /// The profile.
    pub profile: Option<ProfileName>,
    /// The serial: an id.
    pub id: Option<TestName>,
    /// Of a file with several systems, the one that is meant.
    pub system: Option<String>,
}

/// What became of each file.
#[derive(Debug)]
pub struct ImportReport {
    /// The files, in the order they were read.
    pub files: Vec<FileReport>,
    /// Files of folders that are no results of any known format.
    pub skipped: usize,
    /// Results under non-numeric serials, left out.
    pub skipped_serials: usize,
}

/// What became of a file.
#[derive(Debug)]
pub struct FileReport {
    /// Which.
    pub path: PathBuf,
    /// What became of it.
    pub result: Result<ImportedFile, ReadError>,
}

/// A file that was imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedFile {
    /// Its format.
    pub format: Format,
    /// Its cells.
    pub cells: usize,
    /// Samples that the run did not have.
    pub samples: usize,
    /// Samples that it had.
    pub duplicates: usize,
    /// What of it was left out, and what else is to be known, each in a sentence.
    pub notes: Vec<String>,
}

impl FileReport {
    /// Whether it had samples that the run did not have.
    fn has_samples(&self) -> bool {
        self.result.as_ref().is_ok_and(|imported| imported.samples > 0)
    }
}

impl ImportReport {
    /// The files that could not be imported.
    pub fn failed_files(&self) -> impl Iterator<Item = (&Path, &ReadError)> {
        self.files.iter().filter_map(|file| Some((file.path.as_path(), file.result.as_ref().err()?)))
    }

    /// The samples that the run did not have.
    pub fn samples(&self) -> usize {
        self.files.iter().filter_map(|file| file.result.as_ref().ok()).map(|imported| imported.samples).sum()
    }
}

/// Imports files into a run. What cannot be imported is left out and told; nothing that is in the run is changed but
/// the definitions of cells that get more samples.
///
/// # Errors
/// When the run folder cannot be written, and, where that is asked for, at the first file that cannot be imported;
/// then nothing is recorded.
pub fn import(request: &ImportRequest<'_>) -> Result<ImportReport, ImportError> {
    let Candidates { files: found, failed, skipped_serials: incorrect } =
        find_candidates(request.paths, request.include_incorrect);
    let mut report = ImportReport { files: Vec::new(), skipped: 0, skipped_serials: incorrect };
    for (path, error) in failed {
        report.files.push(FileReport { path, result: Err(error.into()) });
    }
    let mut sources = Vec::new();
    for candidate in found {
        match read_source(&candidate, request) {
            Ok(source) => sources.push(source),
            Err(ReadError::Unknown) if candidate.root.is_some() => report.skipped += 1,
            Err(why) => report.files.push(FileReport { path: candidate.path, result: Err(why) }),
        }
    }
    fail_if_strict(request, &mut report)?;
    if sources.is_empty() {
        return Ok(report);
    }
    let run = RunFolder::create(request.folder)?;
    let (journal, lines) = run.journal()?;
    let history = History::of(&run, &lines);
    let mut stage = StagingArea::new(&run, &history, &request.names)?;
    let mut new = Vec::new();
    for source in sources {
        let became = stage.add(&source).map(|added| summarize(&source, added));
        report.files.push(FileReport { path: source.path.clone(), result: became });
        if report.files.last().is_some_and(FileReport::has_samples) {
            new.push(source);
        }
    }
    let strict = fail_if_strict(request, &mut report);
    let staged = stage.finish();
    if strict.is_err() || new.is_empty() {
        run.abandon();
        return strict.map(|()| report);
    }
    record(request, &run, journal, history, &staged, &new)?;
    Ok(report)
}

/// The first file that cannot be imported, as an error where that is asked for.
fn fail_if_strict(request: &ImportRequest<'_>, report: &mut ImportReport) -> Result<(), ImportError> {
    match report.files.iter().position(|file| file.result.is_err()) {
        Some(at) if request.strict => match report.files.swap_remove(at) {
            FileReport { path, result: Err(why) } => Err(ImportError::InvalidFile { path, why }),
            FileReport { .. } => Ok(()),
        },
        _ => Ok(()),
    }
}

fn read_source(candidate: &Candidate, request: &ImportRequest<'_>) -> Result<SourceFile, ReadError> {
    let path = &candidate.path;
    let bytes = read_bytes(path)?;
    let sha256 = Sha256::of(&bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (format, place, mut foreign) = if is_exception_file(path) {
        let (place, foreign) = read_error_cell(path, candidate.root.as_deref(), &text);
        (Format::Pbench, place, foreign)
    } else {
        let ImportRequest { format, include_incorrect, .. } = *request;
        let system = request.names.system.as_deref();
        let read = read(&text, ReadOptions { format, system, include_incorrect });
        let (format, foreign) = match read {
            Err(ReadError::Unknown) => return Err(unknown_format_error(path, &text)),
            read => read?,
        };
        (format, if format == Format::Pbench { locate_result(path) } else { ResultLocation::default() }, foreign)
    };
    foreign.notes.iter_mut().for_each(|note| *note = format!("without {note}"));
    foreign.notes.extend(copy_note(&ArchivedCopy::of(bytes, format, &foreign.secrets)));
    Ok(SourceFile {
        path: path.clone(),
        name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        sha256,
        format,
        foreign,
        location: place,
    })
}

/// Why a file of no known format cannot be read: one that is not even what its name says may be of a known one.
fn unknown_format_error(path: &Path, text: &str) -> ReadError {
    let extension = path.extension().and_then(OsStr::to_str);
    match extension {
        Some("json") => json::check_well_formed(text),
        Some("xml") => phoronix::check_well_formed(text),
        _ => Ok(()),
    }
    .map_or_else(ReadError::InvalidDocument, |()| ReadError::Unknown)
}

fn summarize(source: &SourceFile, added: AddedCounts) -> ImportedFile {
    let AddedCounts { cells, samples, duplicates: already } = added;
    ImportedFile { format: source.format, cells, samples, duplicates: already, notes: source.foreign.notes.clone() }
}
