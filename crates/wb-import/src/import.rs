//! Import of result files into a run folder.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use wb_model::{ProfileName, Sha256, TestName};
use wb_record::{History, RunFolder};

use crate::archive::{ArchivedCopy, copy_note};
use crate::files::{Candidate, Candidates, decode, decompress, find_candidates, read_bytes};
use crate::format::option_of_other_form;
use crate::formats::pbench;
use crate::record::record;
use crate::run_perf::{ResultLocation, is_exception_file, locate_result, read_error_cell};
use crate::staging::{AddedCounts, SourceFile, StagingArea};
use crate::{Format, ImportError, ReadError, ReadOptions, json, read, xml};

#[derive(Debug)]
pub struct ImportRequest<'a> {
    pub folder: &'a Path,
    pub paths: &'a [PathBuf],
    /// Of all files; detected for each if none.
    pub format: Option<Format>,
    pub names: NameOverrides,
    /// Whether failed iterations (`NAME-failN`) and results under non-numeric serials are imported too.
    pub include_incorrect: bool,
    /// Whether a file that cannot be imported aborts the import.
    pub strict: bool,
    /// Command line with masked secrets.
    pub command: Vec<String>,
    pub metadata: BTreeMap<String, String>,
    pub version: &'a str,
    pub program_sha256: String,
    pub boot_id: String,
}

/// Names that replace those in files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameOverrides {
    pub test: Option<TestName>,
    pub profile: Option<ProfileName>,
    /// Used as the serial.
    pub id: Option<TestName>,
    /// The one to import from files with several.
    pub system: Option<String>,
}

#[derive(Debug)]
pub struct ImportReport {
    pub files: Vec<FileReport>,
    /// Files in folders with an unknown format.
    pub skipped: usize,
    /// Skipped results under non-numeric serials.
    pub skipped_serials: usize,
}

#[derive(Debug)]
pub struct FileReport {
    pub path: PathBuf,
    pub result: Result<ImportedFile, ReadError>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedFile {
    pub format: Format,
    pub cells: usize,
    pub samples: usize,
    /// Samples that the run already had.
    pub duplicates: usize,
    /// Skipped results, with the reason.
    pub skipped: Vec<String>,
    pub notes: Vec<String>,
}

impl FileReport {
    fn has_samples(&self) -> bool {
        self.result.as_ref().is_ok_and(|imported| imported.samples > 0)
    }
}

impl ImportReport {
    pub fn failed_files(&self) -> impl Iterator<Item = (&Path, &ReadError)> {
        self.files.iter().filter_map(|file| Some((file.path.as_path(), file.result.as_ref().err()?)))
    }

    pub fn has_skipped_results(&self) -> bool {
        self.files.iter().filter_map(|file| file.result.as_ref().ok()).any(|imported| !imported.skipped.is_empty())
    }

    /// Total of new samples.
    pub fn samples(&self) -> usize {
        self.files.iter().filter_map(|file| file.result.as_ref().ok()).map(|imported| imported.samples).sum()
    }
}

/// Imports files into a run. Files that cannot be imported are skipped and reported; in a strict import they are an
/// error, and nothing is recorded. Nothing in the run is changed except the definitions of cells that get more samples.
pub fn import(request: &ImportRequest<'_>) -> Result<ImportReport, ImportError> {
    let Candidates { files: candidates, failed, skipped_serials } =
        find_candidates(request.paths, request.include_incorrect);
    let mut report = ImportReport { files: Vec::new(), skipped: 0, skipped_serials };
    for (path, error) in failed {
        report.files.push(FileReport { path, result: Err(error.into()) });
    }
    let mut sources = Vec::new();
    for candidate in candidates {
        match read_source(&candidate, request) {
            Ok(source) => sources.push(source),
            Err(ReadError::Unknown) if candidate.root.is_some() => report.skipped += 1,
            Err(error) => report.files.push(FileReport { path: candidate.path, result: Err(error) }),
        }
    }
    fail_if_strict(request, &mut report)?;
    if sources.is_empty() {
        return Ok(report);
    }
    let run = RunFolder::create(request.folder)?;
    let (journal, lines) = run.journal()?;
    let history = History::new(&run, &lines);
    let mut staging = StagingArea::new(&run, &history, &request.names)?;
    let mut new_sources = Vec::new();
    for source in sources {
        let result = staging.add(&source).map(|added| summarize(&source, added));
        report.files.push(FileReport { path: source.path.clone(), result });
        if report.files.last().is_some_and(FileReport::has_samples) {
            new_sources.push(source);
        }
    }
    let strict = fail_if_strict(request, &mut report);
    let staged = staging.finish();
    if strict.is_err() || new_sources.is_empty() {
        run.abandon();
        return strict.map(|()| report);
    }
    record(request, &run, journal, history, &staged, &new_sources)?;
    Ok(report)
}

fn fail_if_strict(request: &ImportRequest<'_>, report: &mut ImportReport) -> Result<(), ImportError> {
    match report.files.iter().position(|file| file.result.is_err()) {
        Some(position) if request.strict => match report.files.swap_remove(position) {
            FileReport { path, result: Err(reason) } => {
                Err(ImportError::InvalidFile { path, source: Box::new(reason) })
            }
            FileReport { .. } => Ok(()),
        },
        _ => Ok(()),
    }
}

fn read_source(candidate: &Candidate, request: &ImportRequest<'_>) -> Result<SourceFile, ReadError> {
    let path = &candidate.path;
    let bytes = read_bytes(path)?;
    let sha256 = Sha256::digest(&bytes);
    let decompressed = decompress(&bytes)?;
    let text = decode(&decompressed);
    let (format, location, mut results) = if is_exception_file(path) {
        let (location, results) = read_error_cell(path, candidate.root.as_deref(), &text);
        (pbench::FORMAT, location, results)
    } else {
        let ImportRequest { format, include_incorrect, .. } = *request;
        let system = request.names.system.as_deref();
        let parsed = read(&text, ReadOptions { format, system, include_incorrect });
        let (format, results) = match parsed {
            // Files in folders are skipped if their format is unknown.
            Err(ReadError::Unknown) => {
                let other_form = option_of_other_form(&text).filter(|_| candidate.root.is_none());
                let unknown = || unknown_format_error(path, &text);
                return Err(other_form.map_or_else(unknown, |option| ReadError::OtherForm { option }));
            }
            parsed => parsed?,
        };
        (format, if format == pbench::FORMAT { locate_result(path) } else { ResultLocation::default() }, results)
    };
    // Two tests of one benchmark have only different names.
    if let Some(name) = &location.test {
        results.cells.iter_mut().for_each(|cell| (cell.test, cell.summary) = pbench::test(name));
    }
    for note in results.notes.iter_mut().chain(&mut results.omitted) {
        *note = format!("skipped {note}");
    }
    results.omitted.extend(copy_note(&ArchivedCopy::new(bytes, format, &results.secrets)));
    Ok(SourceFile {
        path: path.clone(),
        name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        sha256,
        format,
        results,
        location,
    })
}

/// Error for an unknown format; invalid JSON or XML is reported instead, as it may hide a known format.
fn unknown_format_error(path: &Path, text: &str) -> ReadError {
    let extension = path.extension().and_then(OsStr::to_str);
    match extension {
        Some("json") => json::check_well_formed(text),
        Some("xml") => xml::check_well_formed(text),
        _ => Ok(()),
    }
    .map_or_else(ReadError::InvalidDocument, |()| ReadError::Unknown)
}

fn summarize(source: &SourceFile, added: AddedCounts) -> ImportedFile {
    let AddedCounts { cells, samples, duplicates, skipped } = added;
    let skipped = [source.results.notes.clone(), skipped].concat();
    let notes = source.results.omitted.clone();
    ImportedFile { format: source.format, cells, samples, duplicates, skipped, notes }
}
