//! The story of an import.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use wb_model::{ProfileName, Sha256, TestName};
use wb_record::{History, RunFolder};

use crate::files::{Candidate, Candidates, bytes, candidates};
use crate::formats::phoronix;
use crate::kept::{Copy, note};
use crate::record::record;
use crate::runperf::{Place, error, is_exception, place};
use crate::stage::{Added, Source, Stage};
use crate::{Format, ImportError, ReadError, ReadOptions, json, read};

/// What is to be imported, and where it is recorded.
#[derive(Debug)]
pub struct Request<'a> {
    /// The run folder; made, or extended.
    pub folder: &'a Path,
    /// Files, and folders of files.
    pub paths: &'a [PathBuf],
    /// The format of all of them; without, each shows its own.
    pub format: Option<Format>,
    /// What cells are called.
    pub names: Names,
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
pub struct Names {
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
pub struct Report {
    /// The files, in the order they were read.
    pub files: Vec<FileReport>,
    /// Files of folders that are no results of any known format.
    pub passed_over: usize,
    /// Results under non-numeric serials, left out.
    pub incorrect: usize,
}

/// What became of a file.
#[derive(Debug)]
pub struct FileReport {
    /// Which.
    pub path: PathBuf,
    /// What became of it.
    pub became: Result<Imported, ReadError>,
}

/// A file that was imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its format.
    pub format: Format,
    /// Its cells.
    pub cells: usize,
    /// Samples that the run did not have.
    pub samples: usize,
    /// Samples that it had.
    pub already: usize,
    /// What of it was left out, and what else is to be known, each in a sentence.
    pub notes: Vec<String>,
}

impl FileReport {
    /// Whether it had samples that the run did not have.
    fn has_samples(&self) -> bool {
        self.became.as_ref().is_ok_and(|imported| imported.samples > 0)
    }
}

impl Report {
    /// The files that could not be imported.
    pub fn left_out(&self) -> impl Iterator<Item = (&Path, &ReadError)> {
        self.files.iter().filter_map(|file| Some((file.path.as_path(), file.became.as_ref().err()?)))
    }

    /// The samples that the run did not have.
    pub fn samples(&self) -> usize {
        self.files.iter().filter_map(|file| file.became.as_ref().ok()).map(|imported| imported.samples).sum()
    }
}

/// Imports files into a run. What cannot be imported is left out and told; nothing that is in the run is changed but
/// the definitions of cells that get more samples.
///
/// # Errors
/// When the run folder cannot be written, and, where that is asked for, at the first file that cannot be imported;
/// then nothing is recorded.
pub fn import(request: &Request<'_>) -> Result<Report, ImportError> {
    let Candidates { found, failed, incorrect } = candidates(request.paths, request.include_incorrect);
    let mut report = Report { files: Vec::new(), passed_over: 0, incorrect };
    for (path, error) in failed {
        report.files.push(FileReport { path, became: Err(error.into()) });
    }
    let mut sources = Vec::new();
    for candidate in found {
        match source(&candidate, request) {
            Ok(source) => sources.push(source),
            Err(ReadError::Unknown) if candidate.within.is_some() => report.passed_over += 1,
            Err(why) => report.files.push(FileReport { path: candidate.path, became: Err(why) }),
        }
    }
    ends_where_strict(request, &mut report)?;
    if sources.is_empty() {
        return Ok(report);
    }
    let run = RunFolder::create(request.folder)?;
    let (journal, lines) = run.journal()?;
    let history = History::of(&run, &lines);
    let mut stage = Stage::new(&run, &history, &request.names)?;
    let mut new = Vec::new();
    for source in sources {
        let became = stage.add(&source).map(|added| imported(&source, added));
        report.files.push(FileReport { path: source.path.clone(), became });
        if report.files.last().is_some_and(FileReport::has_samples) {
            new.push(source);
        }
    }
    let strict = ends_where_strict(request, &mut report);
    let staged = stage.done();
    if strict.is_err() || new.is_empty() {
        run.abandon();
        return strict.map(|()| report);
    }
    record(request, &run, journal, history, &staged, &new)?;
    Ok(report)
}

/// The first file that cannot be imported, as an error where that is asked for.
fn ends_where_strict(request: &Request<'_>, report: &mut Report) -> Result<(), ImportError> {
    match report.files.iter().position(|file| file.became.is_err()) {
        Some(at) if request.strict => match report.files.swap_remove(at) {
            FileReport { path, became: Err(why) } => Err(ImportError::Strict { path, why }),
            FileReport { .. } => Ok(()),
        },
        _ => Ok(()),
    }
}

fn source(candidate: &Candidate, request: &Request<'_>) -> Result<Source, ReadError> {
    let path = &candidate.path;
    let bytes = bytes(path)?;
    let sha256 = Sha256::of(&bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (format, place, mut foreign) = if is_exception(path) {
        let (place, foreign) = error(path, candidate.within.as_deref(), &text);
        (Format::Pbench, place, foreign)
    } else {
        let Request { format, include_incorrect, .. } = *request;
        let system = request.names.system.as_deref();
        let read = read(&text, ReadOptions { format, system, include_incorrect });
        let (format, foreign) = match read {
            Err(ReadError::Unknown) => return Err(unknown(path, &text)),
            read => read?,
        };
        (format, if format == Format::Pbench { place(path) } else { Place::default() }, foreign)
    };
    foreign.notes.iter_mut().for_each(|note| *note = format!("without {note}"));
    foreign.notes.extend(note(&Copy::of(bytes, format, &foreign.secrets)));
    Ok(Source {
        path: path.clone(),
        name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        sha256,
        format,
        foreign,
        place,
    })
}

/// Why a file of no known format cannot be read: one that is not even what its name says may be of a known one.
fn unknown(path: &Path, text: &str) -> ReadError {
    let extension = path.extension().and_then(OsStr::to_str);
    match extension {
        Some("json") => json::is_well_formed(text),
        Some("xml") => phoronix::is_well_formed(text),
        _ => Ok(()),
    }
    .map_or_else(ReadError::NoDocument, |()| ReadError::Unknown)
}

fn imported(source: &Source, added: Added) -> Imported {
    let Added { cells, samples, already } = added;
    Imported { format: source.format, cells, samples, already, notes: source.foreign.notes.clone() }
}
