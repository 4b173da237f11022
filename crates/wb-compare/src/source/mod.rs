//! From folders to [`Builds`]: which folders make which build, and what was odd about them.
//!
//! Files are read in parallel, each into a shape of its own ([`parsed`]); these are put together one after the other
//! ([`merge`]), so that the outcome does not depend on which was read first.

mod copies;
mod merge;
mod native;
mod pairing;
pub(crate) mod parsed_result;
mod run_records;
pub(crate) mod runperf;
mod warning;
mod weighbridge;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::build::{Build, Builds, Run, TestError};
use crate::metadata::Metadata;
use crate::unknown_name::{UnknownName, join_build_names};
use wb_model::{Sha256, pluralize};
use wb_record::{RecordError, RunFolder};

use copies::ResultFiles;
use merge::merge;
use parsed_result::ParsedResult;
pub use runperf::folder::Layout;
use runperf::folder::{ResultFile, ResultFolder};
pub use warning::{Warning, WarningKind};
pub(crate) use weighbridge::DEFINITION_KEY;
pub use weighbridge::EMULATED;

/// What makes a build: its name and the folders of its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSource {
    /// The build's name.
    pub name: String,
    /// The folders of its runs.
    pub runs: Vec<PathBuf>,
    /// Which profile is taken for which: by the name in this source, the name that it is compared as. A profile whose
    /// own name is taken by another one is left out, and so is one of a later source where the first has taken its own away.
    pub profiles: BTreeMap<String, String>,
}

/// How folders are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Read failed iterations (`*-failN`) and results under non-numeric serials too.
    pub include_incorrect: bool,
    /// Whatever is odd is an error.
    pub strict: bool,
    /// Hold what software did in the place of a processor against what a processor did.
    pub allow_emulated: bool,
    /// Parameters in which cells may differ and be compared all the same.
    pub allow_different: BTreeSet<String>,
}

/// What was read.
#[derive(Debug)]
pub struct LoadedBuilds {
    /// The builds, in the order of their sources.
    pub builds: Builds,
    /// What was odd: of folders and metadata first, then of results, each in the order of the sources and their files.
    pub warnings: Vec<Warning>,
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Text that names no source.
    #[error("`{0}` names no build: [NAME=]FOLDER[,FOLDER…] is expected")]
    NoSource(String),
    /// One run cannot stand for several.
    #[error("{} is given twice for one build: a run counts once", .0.display())]
    Twice(PathBuf),
    /// A folder that is not there or cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// A folder with neither results nor metadata.
    #[error("{}", no_results(path, folders))]
    NoResults {
        /// Which.
        path: PathBuf,
        /// The folders in it that hold results, by name.
        folders: Vec<String>,
    },
    /// A run of this program whose records are damaged.
    #[error("cannot compare {}: {source}", path.display())]
    Records {
        /// Its folder.
        path: PathBuf,
        /// What is damaged.
        source: RecordError,
    },
    /// A run of this program whose results are not those of its records, and cannot be derived again.
    #[error("{} has results that are older than its records, and they cannot be studied: {reason}", path.display())]
    Outdated {
        /// Its folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A run that is a copy of another one of the same build.
    #[error("{} is a copy of {}: a run counts once", path.display(), original.display())]
    Copy {
        /// Its folder.
        path: PathBuf,
        /// The folder of the other.
        original: PathBuf,
    },
    /// A profile or parameter that the builds do not have.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// Something odd, where that was to be an error.
    #[error("{}", _0.message())]
    Strict(Warning),
    /// More metrics, samples or parameters than this program can count.
    #[error("{} takes the results beyond {} metrics or samples in a run", path.display(), u32::MAX)]
    TooMuch {
        /// The file that was one too many.
        path: PathBuf,
    },
}

/// How many folders with results are named.
const MAX_LISTED: usize = 6;

fn no_results(path: &Path, folders: &[String]) -> String {
    let path = path.display();
    if folders.is_empty() {
        return format!("{path} holds no results: expected PROFILE/TEST/SERIAL/result.json or RUNPERF_METADATA");
    }
    let named = folders[..folders.len().min(MAX_LISTED)].join(", ");
    let more = match folders.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{path} is not one result folder: it holds {}: {named}{more}", pluralize(folders.len(), "result folder"))
}

impl BuildSource {
    /// Reads `[NAME=]FOLDER[,FOLDER…]`; without a name it is the first folder's own. What stands before a `=` is a name
    /// unless it has a `/` in it.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let none = || SourceError::NoSource(text.to_owned());
        let (name, folders) = match text.split_once('=') {
            Some((name, folders)) if !name.contains('/') => (Some(name), folders),
            _ => (None, text),
        };
        let runs: Vec<PathBuf> = folders.split(',').map(PathBuf::from).collect();
        if runs.iter().any(|run| run.as_os_str().is_empty()) || name == Some("") {
            return Err(none());
        }
        let first = runs.first().ok_or_else(none)?;
        let own = || first.file_name().unwrap_or(first.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name: name.map_or_else(own, str::to_owned), runs, profiles: BTreeMap::new() })
    }

    /// What a profile of this source is compared as; none where another takes its name.
    fn mapped_profile<'a>(&'a self, profile: &'a str) -> Option<&'a str> {
        match self.profiles.get(profile) {
            Some(name) => Some(name),
            None => self.profiles.values().all(|name| name != profile).then_some(profile),
        }
    }

    /// Whether it has nothing by this name, since what it has is compared as another: then others are not held against it.
    fn is_mapped_away(&self, profile: &str) -> bool {
        self.profiles.contains_key(profile) && self.profiles.values().all(|name| name != profile)
    }
}

/// Studies a run of this program. Returns the text of each serial's `result.json`, by the file's path, or why it cannot.
pub type StudyFn<'a> = &'a dyn Fn(&RunFolder) -> Result<Vec<(PathBuf, Vec<u8>)>, String>;

/// Reads the folders of all sources, in parallel. What is malformed among them is named and left out. Where the results
/// of a run of this program are not those of its records, those of `study` take their place.
///
/// Errors: a folder that cannot be read or holds no results; damaged records; a copy of a run within a build; and with
/// [`ReadOptions::strict`] whatever is odd.
pub fn read(sources: &[BuildSource], options: &ReadOptions, study: StudyFn<'_>) -> Result<LoadedBuilds, SourceError> {
    let mut read = LoadedBuilds { builds: Builds::default(), warnings: Vec::new() };
    let mut files = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let mut build = Build { name: source.name.clone(), runs: Vec::new() };
        let mut seen = BTreeSet::new();
        let mut journals: BTreeMap<Sha256, &Path> = BTreeMap::new();
        let mut contents_before: Vec<(ResultFiles, &PathBuf)> = Vec::new();
        for path in &source.runs {
            if !seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
                return Err(SourceError::Twice(path.clone()));
            }
            let mut folder = ResultFolder::list(path, options.include_incorrect)?;
            let place = RunIndex { build: at, run: build.runs.len() };
            let own = match folder.layout {
                Layout::RunPerf => None,
                Layout::Weighbridge => Some(native::read(path, &mut folder, study)?),
            };
            if let Some(journal) = own.as_ref().and_then(|own| own.journal.clone())
                && let Some(original) = journals.insert(journal, path)
            {
                return Err(SourceError::Copy { path: path.clone(), original: original.to_owned() });
            }
            if folder.layout == Layout::RunPerf && source.runs.len() > 1 {
                let unreadable = |source| SourceError::Unreadable { path: path.clone(), source };
                let contents = ResultFiles::of(path, &folder).map_err(unreadable)?;
                for (before, original) in &contents_before {
                    if contents.is_copy_of(before).map_err(unreadable)? {
                        return Err(SourceError::Copy { path: path.clone(), original: PathBuf::clone(original) });
                    }
                }
                contents_before.push((contents, path));
            }
            files.extend(folder.results.into_iter().map(|file| (place, file)));
            read.warnings.extend(folder.warnings);
            let mut metadata = match (own, folder.metadata) {
                (Some(own), _) => own.metadata,
                (None, None) => Metadata::default(),
                (None, Some(file)) => metadata(&file, &mut read.warnings),
            };
            let environment = std::mem::take(&mut metadata.environment).into_iter();
            let mapped = environment.filter_map(|(name, it)| Some((source.mapped_profile(&name)?.to_owned(), it)));
            metadata.environment = mapped.collect();
            build.runs.push(Run { path: path.to_owned(), layout: folder.layout, metadata, ..Run::default() });
            if let Some(run) = build.runs.last_mut() {
                let errors =
                    folder.errors.into_iter().filter_map(|error| map_error_profile(error, source, at, &sources[0]));
                run.errors = errors.collect();
            }
        }
        read.builds.list.push(build);
    }
    check_mapped_profiles(sources, &read.builds, &files)?;
    // Memory for a file's text is taken once a thread: the system clears whatever is taken anew.
    let parsed: Vec<_> = files.par_iter().map_init(Vec::new, |text, (_, file)| parse(file, options, text)).collect();
    let file = |((place, file), content): ((RunIndex, ResultFile), Result<ParsedResult, WarningKind>)| {
        let profile = compared_as(&file.profile, &sources[place.build], place.build, &sources[0]).map(str::to_owned);
        pairing::ResultSource { run: place, profile, file, content }
    };
    let mut files: Vec<pairing::ResultSource> = files.into_iter().zip(parsed).map(file).collect();
    pairing::check_parameters(&files, &read.builds.list, &options.allow_different)?;
    pairing::pair_cases(&mut files, &options.allow_different);
    for pairing::ResultSource { run: place, profile, file, content } in files {
        match content {
            Ok(parsed) => {
                let odd =
                    profile.map(|profile| merge(&mut read.builds, place, &profile, &file, &parsed)).transpose()?;
                let odd = parsed.warnings.into_iter().chain(odd.flatten());
                read.warnings.extend(odd.map(|what| Warning { path: file.path.clone(), kind: what }));
            }
            Err(what) => read.warnings.push(Warning { path: file.path, kind: what }),
        }
    }
    match read.warnings.first() {
        Some(first) if options.strict => Err(SourceError::Strict(first.clone())),
        _ => Ok(read),
    }
}

/// What a profile of a source is compared as, by the source's place; none where it is left out.
fn compared_as<'a>(profile: &'a str, source: &'a BuildSource, at: usize, first: &BuildSource) -> Option<&'a str> {
    source.mapped_profile(profile).filter(|name| at == 0 || !first.is_mapped_away(name))
}

/// An error with the profile that its source's profile is compared as; none where that profile is left out.
fn map_error_profile(error: TestError, source: &BuildSource, at: usize, first: &BuildSource) -> Option<TestError> {
    let TestError { place, text } = error;
    let (profile, rest) = place.split_once('/')?;
    let place = format!("{}/{rest}", compared_as(profile, source, at, first)?);
    Some(TestError { place, text })
}

/// Whether the profiles that are taken for others are in their build, and the others in another one.
fn check_mapped_profiles(
    sources: &[BuildSource],
    builds: &Builds,
    files: &[(RunIndex, ResultFile)],
) -> Result<(), SourceError> {
    let looked_for = |given: &str, among: &dyn Fn(usize) -> bool| {
        let known: BTreeSet<String> =
            files.iter().filter(|(place, _)| among(place.build)).map(|(_, file)| file.profile.clone()).collect();
        let searched = builds.list.iter().enumerate().filter(|(at, _)| among(*at)).map(|(_, build)| build);
        let missing = !known.contains(given) && searched.clone().next().is_some();
        let unknown = || UnknownName {
            kind: "profile",
            given: given.to_owned(),
            builds: join_build_names(searched),
            candidates: known,
        };
        if missing { Err(unknown()) } else { Ok(()) }
    };
    for (at, source) in sources.iter().enumerate() {
        for (own, other) in &source.profiles {
            looked_for(own, &|build| build == at)?;
            looked_for(other, &|build| build != at)?;
        }
    }
    Ok(())
}

/// The run of a build that a file belongs to.
#[derive(Debug, Clone, Copy)]
struct RunIndex {
    build: usize,
    run: usize,
}

/// Reads a file, its text into what is given for it.
fn parse(file: &ResultFile, options: &ReadOptions, text: &mut Vec<u8>) -> Result<ParsedResult, WarningKind> {
    let text = match &file.studied {
        Some(studied) => studied,
        None => {
            text.clear();
            File::open(&file.path).and_then(|mut file| file.read_to_end(text)).map_err(WarningKind::unreadable)?;
            &*text
        }
    };
    // Looking at a file once is cheaper than at each string in it.
    let text = std::str::from_utf8(text).map_err(WarningKind::malformed)?;
    let parsed = match file.layout {
        Layout::RunPerf => runperf::result::parse(text, options.include_incorrect),
        Layout::Weighbridge => {
            let keys = pairing::reduced_keys(&file.path, &options.allow_different);
            weighbridge::parse(text, options.allow_emulated, &keys)
        }
    };
    parsed.map_err(WarningKind::malformed)
}

/// What a file of run-perf's metadata says.
fn metadata(path: &Path, warnings: &mut Vec<Warning>) -> Metadata {
    match std::fs::read(path) {
        Ok(bytes) => {
            let (metadata, bad) = Metadata::parse(&String::from_utf8_lossy(&bytes));
            warnings
                .extend(bad.into_iter().map(|bad| Warning { path: path.to_owned(), kind: WarningKind::Metadata(bad) }));
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
    fn a_profile_whose_name_is_taken_is_left_out() {
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
