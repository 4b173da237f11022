//! Reads folders into [`Builds`], with warnings about problems found.
//!
//! Files are parsed in parallel, each into its own structure ([`parsed_result`]), and merged sequentially
//! ([`merge()`]), so that the result does not depend on the order of reading.

mod changed_class;
mod copies;
pub(crate) mod folder;
mod imported_cells;
mod merge;
mod native;
mod pairing;
pub(crate) mod parsed_result;
mod run_records;
mod value_map;
mod warning;
mod weighbridge;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::build::{Build, Builds, Layout, Run, TestError};
use crate::exit_status;
use crate::metadata::Metadata;
use crate::run_identity::RunIdentity;
use crate::run_perf;
use crate::schedule::{Rounds, Schedule};
use crate::unknown_name::{UnknownName, join_build_names};
use wb_model::pluralize;
use wb_record::files::{MAX_FILE, relative_to};
use wb_record::{RecordError, RunFolder, RunRecords};
use wb_sys::contained_file;

use copies::ResultFiles;
use folder::{ResultFile, ResultFolder};
use merge::merge;
use parsed_result::ParsedResult;
pub use value_map::ValueMap;
pub use warning::{Warning, WarningKind};

/// The source of a build: its name and the folders of its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSource {
    pub name: String,
    pub runs: Vec<PathBuf>,
    /// Mapping of profiles, from the name in this source to the name under which it is compared. A profile is skipped
    /// if its own name is the target of a mapping, or, in later sources, if the first source has mapped its name to
    /// another.
    pub profiles: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Include failed iterations (`*-failN`) and results under non-numeric serials.
    pub include_incorrect: bool,
    pub strict: bool,
    /// Compare emulated processors with hardware.
    pub allow_emulated: bool,
    /// Parameters in which compared cells may differ.
    pub allow_different: BTreeSet<String>,
    /// Values of axes that later builds have in the place of others.
    pub values: ValueMap,
    /// Read when samples were taken, which a comparison within one run needs.
    pub schedule: bool,
}

#[derive(Debug)]
pub struct LoadedBuilds {
    /// In the order of their sources.
    pub builds: Builds,
    /// First about folders and metadata, then about results, each in the order of the sources and their files.
    pub warnings: Vec<Warning>,
}

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("invalid build `{0}`: expected [NAME=]RUN[,RUN…]")]
    NoSource(String),
    #[error("{} is given twice for one build: a run counts once", .0.display())]
    Twice(PathBuf),
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// A folder with neither results nor errors nor metadata.
    #[error("{}", no_results(path, folders, unreadable))]
    NoResults {
        path: PathBuf,
        /// Those of its folders that have some.
        folders: Vec<String>,
        unreadable: Vec<Warning>,
    },
    #[error("cannot compare {}: {source}", path.display())]
    Records { path: PathBuf, source: RecordError },
    #[error("{} has results that are older than its records, and cannot be studied: {reason}", path.display())]
    Outdated { path: PathBuf, reason: String },
    #[error("{} is a copy of {}, or an import of the same file: a run counts once", path.display(), original.display())]
    Copy { path: PathBuf, original: PathBuf },
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// A warning, with [`ReadOptions::strict`].
    #[error("{}", _0.message())]
    Strict(Warning),
    #[error("too many results with {}: a run is limited to {} metrics or samples", .0.display(), u32::MAX)]
    TooMuch(PathBuf),
}

const MAX_LISTED: usize = 6;

fn no_results(path: &Path, folders: &[String], unreadable: &[Warning]) -> String {
    let path = path.display();
    if folders.is_empty() {
        let first = unreadable.first().map(|warning| format!("; {}", warning.message())).unwrap_or_default();
        return format!("{path} has no results: expected PROFILE/TEST/SERIAL/result.json or RUNPERF_METADATA{first}");
    }
    let listed = folders[..folders.len().min(MAX_LISTED)].join(", ");
    let more = match folders.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{path} is not a single result folder: it contains {}: {listed}{more}",
        pluralize(folders.len(), "result folder")
    )
}

impl BuildSource {
    /// Parses `[NAME=]RUN[,RUN…]`; the name defaults to the first folder's. Text before `=` with a `/` is no name.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let invalid = || SourceError::NoSource(text.to_owned());
        let (name, folders) = match text.split_once('=') {
            Some((name, folders)) if !name.contains('/') => (Some(name), folders),
            _ => (None, text),
        };
        let runs: Vec<PathBuf> = folders.split(',').map(PathBuf::from).collect();
        if runs.iter().any(|run| run.as_os_str().is_empty()) || name == Some("") {
            return Err(invalid());
        }
        let first = runs.first().ok_or_else(invalid)?;
        let default_name = || first.file_name().unwrap_or(first.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name: name.map_or_else(default_name, str::to_owned), runs, profiles: BTreeMap::new() })
    }

    /// The name that a profile of this source is compared as; `None` if another profile is mapped to its name.
    fn mapped_profile<'a>(&'a self, profile: &'a str) -> Option<&'a str> {
        match self.profiles.get(profile) {
            Some(name) => Some(name),
            None => self.profiles.values().all(|name| name != profile).then_some(profile),
        }
    }

    /// Whether this profile is mapped to another name and nothing is mapped to it.
    fn is_mapped_away(&self, profile: &str) -> bool {
        self.profiles.contains_key(profile) && self.profiles.values().all(|name| name != profile)
    }
}

/// Studies a Weighbridge run: path and text of each serial's `result.json`, or the reason why it cannot be studied.
pub type StudyFn<'a> = &'a dyn Fn(&RunFolder) -> Result<Vec<(PathBuf, Vec<u8>)>, String>;

/// The metadata and environments of a Weighbridge run; unreadable files are skipped with a warning.
pub fn run_metadata(run: &RunFolder) -> Result<(Metadata, Vec<Warning>), RecordError> {
    Ok(run_records::metadata(run, &RunRecords::read(run)?))
}

/// Reads the folders of all sources, in parallel. Malformed files are skipped with a warning, an error with
/// [`ReadOptions::strict`]. Where a Weighbridge run's results do not fit its records, those of `study` replace them.
pub fn read(sources: &[BuildSource], options: &ReadOptions, study: StudyFn<'_>) -> Result<LoadedBuilds, SourceError> {
    let mut read = LoadedBuilds { builds: Builds::default(), warnings: Vec::new() };
    let mut files = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let mut build = Build { name: source.name.clone(), runs: Vec::new() };
        let mut earlier_contents: Vec<(ResultFiles, &PathBuf)> = Vec::new();
        for path in &source.runs {
            let canonical = path.canonicalize().unwrap_or_else(|_| path.clone());
            if build.runs.iter().any(|run| run.identity.folder == canonical) {
                return Err(SourceError::Twice(path.clone()));
            }
            let mut folder = ResultFolder::list(path, options.include_incorrect)?;
            let run_index = RunIndex { build: at, run: build.runs.len() };
            let mut native = match folder.layout {
                Layout::RunPerf => None,
                Layout::Weighbridge => Some(native::read(path, &mut folder, study)?),
            };
            let recorded = native.as_ref().map(|native| native.identity.clone()).unwrap_or_default();
            let identity = RunIdentity { folder: canonical, ..recorded };
            if let Some(original) = build.runs.iter().find(|run| run.identity.is_same_run(&identity)) {
                return Err(SourceError::Copy { path: path.clone(), original: original.path.clone() });
            }
            if folder.layout == Layout::RunPerf && source.runs.len() > 1 {
                let unreadable = |source| SourceError::Unreadable { path: path.clone(), source };
                let contents = ResultFiles::new(path, &folder).map_err(unreadable)?;
                for (earlier, original) in &earlier_contents {
                    if contents.is_copy_of(earlier).map_err(unreadable)? {
                        return Err(SourceError::Copy { path: path.clone(), original: PathBuf::clone(original) });
                    }
                }
                earlier_contents.push((contents, path));
            }
            files.extend(folder.results.into_iter().map(|file| (run_index, file)));
            read.warnings.extend(folder.warnings);
            let planned = native.as_mut().filter(|_| options.schedule);
            let planned =
                planned.map(|native| (std::mem::take(&mut native.planned), std::mem::take(&mut native.rounds)));
            let mut metadata = match (native, folder.metadata) {
                (Some(native), _) => native.metadata,
                (None, None) => Metadata::default(),
                (None, Some(file)) => metadata(path, &file, &mut read.warnings),
            };
            let environment = std::mem::take(&mut metadata.environment).into_iter();
            let mapped = environment.filter_map(|(name, it)| Some((source.mapped_profile(&name)?.to_owned(), it)));
            metadata.environment = mapped.collect();
            let (planned, rounds) = planned.unwrap_or_default();
            let schedule = Schedule { planned, rounds, ..Schedule::default() };
            let (path, layout) = (path.to_owned(), folder.layout);
            build.runs.push(Run { path, layout, metadata, identity, schedule, ..Run::default() });
            if let Some(run) = build.runs.last_mut() {
                let errors =
                    folder.errors.into_iter().filter_map(|error| map_error_profile(error, source, at, &sources[0]));
                run.errors = errors.collect();
            }
        }
        read.builds.list.push(build);
    }
    check_mapped_profiles(sources, &read.builds, &files)?;
    // The buffer for a file's text is reused by each thread, since the system clears newly allocated memory.
    let builds = &read.builds.list;
    let parse = |text: &mut Vec<u8>, (run, file): &(RunIndex, ResultFile)| {
        parse(run.build, file, options, &builds[run.build].runs[run.run].schedule.rounds, text)
    };
    let parsed: Vec<_> = files.par_iter().map_init(Vec::new, parse).collect();
    let file = |((run_index, file), content): ((RunIndex, ResultFile), Result<ParsedResult, WarningKind>)| {
        let profile =
            compared_as(&file.profile, &sources[run_index.build], run_index.build, &sources[0]).map(str::to_owned);
        pairing::ResultSource { run: run_index, profile, file, content }
    };
    let mut files: Vec<pairing::ResultSource> = files.into_iter().zip(parsed).map(file).collect();
    options.values.map_results(&mut files, &read.builds.list)?;
    pairing::check_parameters(&files, &read.builds.list, &options.allow_different)?;
    read.warnings.extend(imported_cells::pair_imported_cells(&mut files));
    pairing::pair_cases(&mut files, &options.allow_different);
    for pairing::ResultSource { run: run_index, profile, file, content } in files {
        match content {
            Ok(parsed) => {
                let warning =
                    profile.map(|profile| merge(&mut read.builds, run_index, &profile, &file, &parsed)).transpose()?;
                let kinds = parsed.warnings.into_iter().chain(warning.flatten());
                read.warnings.extend(kinds.map(|kind| Warning { path: file.path.clone(), kind }));
            }
            Err(kind) => read.warnings.push(Warning { path: file.path, kind }),
        }
    }
    changed_class::pair_changed_classes(&mut read.builds);
    exit_status::fail_beside_successes(&mut read.builds);
    match read.warnings.first() {
        Some(first) if options.strict => Err(SourceError::Strict(first.clone())),
        _ => Ok(read),
    }
}

/// The name that a profile of a source, given by its position, is compared as; `None` if it is skipped.
fn compared_as<'a>(profile: &'a str, source: &'a BuildSource, position: usize, first: &BuildSource) -> Option<&'a str> {
    source.mapped_profile(profile).filter(|name| position == 0 || !first.is_mapped_away(name))
}

fn map_error_profile(
    error: TestError,
    source: &BuildSource,
    position: usize,
    first: &BuildSource,
) -> Option<TestError> {
    let TestError { location, message } = error;
    let (profile, rest) = location.split_once('/')?;
    let location = format!("{}/{rest}", compared_as(profile, source, position, first)?);
    Some(TestError { location, message })
}

/// Checks that each mapped profile exists in its build, and its target in another one.
fn check_mapped_profiles(
    sources: &[BuildSource],
    builds: &Builds,
    files: &[(RunIndex, ResultFile)],
) -> Result<(), SourceError> {
    let require = |name: &str, among: &dyn Fn(usize) -> bool| {
        let candidates: BTreeSet<String> = files
            .iter()
            .filter(|(run_index, _)| among(run_index.build))
            .map(|(_, file)| file.profile.clone())
            .collect();
        let searched = builds.list.iter().enumerate().filter(|(index, _)| among(*index)).map(|(_, build)| build);
        let missing = !candidates.contains(name) && searched.clone().next().is_some();
        let unknown =
            || UnknownName { kind: "profile", name: name.to_owned(), builds: join_build_names(searched), candidates };
        if missing { Err(unknown()) } else { Ok(()) }
    };
    for (index, source) in sources.iter().enumerate() {
        for (own, other) in &source.profiles {
            require(own, &|build| build == index)?;
            require(other, &|build| build != index)?;
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct RunIndex {
    build: usize,
    run: usize,
}

/// `text` is a buffer for the content of the file, which keeps its capacity between files.
fn parse(
    build: usize,
    file: &ResultFile,
    options: &ReadOptions,
    rounds: &Rounds,
    text: &mut Vec<u8>,
) -> Result<ParsedResult, WarningKind> {
    let text = match &file.recomputed {
        Some(recomputed) => recomputed,
        None => {
            text.clear();
            let opened = relative_to(&file.root, &file.path).and_then(|path| contained_file::open(&file.root, path));
            let read = opened.and_then(|file| match file.metadata()?.len() {
                length if length > MAX_FILE => Err(io::Error::from(io::ErrorKind::FileTooLarge)),
                length => file.take(length).read_to_end(text),
            });
            read.map_err(WarningKind::unreadable)?;
            &*text
        }
    };
    // Validating the whole text once is cheaper than each string in it.
    let text = std::str::from_utf8(text).map_err(WarningKind::malformed)?;
    let parsed = match file.layout {
        Layout::RunPerf => run_perf::format::result::parse(text, options.include_incorrect),
        Layout::Weighbridge => {
            let values = if build == 0 { &ValueMap::default() } else { &options.values };
            let definitions =
                |imported| pairing::recorded_definitions(file, &options.allow_different, values, imported);
            weighbridge::parse(text, options, definitions, rounds)
        }
    };
    parsed.map_err(WarningKind::malformed)
}

fn metadata(root: &Path, path: &Path, warnings: &mut Vec<Warning>) -> Metadata {
    match relative_to(root, path).and_then(|path| contained_file::read(root, path, MAX_FILE)) {
        Ok(bytes) => {
            let (metadata, errors) = Metadata::parse(&String::from_utf8_lossy(&bytes));
            warnings.extend(
                errors.into_iter().map(|error| Warning { path: path.to_owned(), kind: WarningKind::Metadata(error) }),
            );
            metadata
        }
        Err(error) => {
            warnings.push(Warning { path: path.to_owned(), kind: WarningKind::unreadable(error) });
            Metadata::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_name_and_folders() {
        let source = BuildSource::parse("new=a/b,c").unwrap();
        assert_eq!((source.name.as_str(), source.runs), ("new", vec!["a/b".into(), "c".into()]));
        assert_eq!(BuildSource::parse("a/b/").unwrap().name, "b");
        assert_eq!(BuildSource::parse("./x=y").unwrap().runs, vec![PathBuf::from("./x=y")]);
        for bad in ["", "=a", "a,,b", "n="] {
            assert!(BuildSource::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_profile_whose_name_is_a_mapping_target_is_skipped() {
        let mut source = BuildSource::parse("a").unwrap();
        assert_eq!(source.mapped_profile("Localhost"), Some("Localhost"));
        source.profiles.insert("DefaultLibvirt".to_owned(), "Localhost".to_owned());
        assert_eq!(source.mapped_profile("DefaultLibvirt"), Some("Localhost"));
        assert_eq!(source.mapped_profile("Localhost"), None);
        assert_eq!(source.mapped_profile("Tuned"), Some("Tuned"));
        assert!(source.is_mapped_away("DefaultLibvirt") && !source.is_mapped_away("Localhost"));
        source.profiles.insert("Localhost".to_owned(), "DefaultLibvirt".to_owned());
        assert!(!source.is_mapped_away("DefaultLibvirt") && !source.is_mapped_away("Localhost"));
    }
}
