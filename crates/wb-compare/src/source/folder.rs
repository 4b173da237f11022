//! Lists a result folder, of run-perf or of Weighbridge: its result files, errors and metadata.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wb_record::files::{self, relative_to};
use wb_sys::contained_file;

use super::weighbridge::{JOURNAL, RUN_FILE};
use super::{SourceError, Warning, WarningKind};
use crate::build::{Layout, TestError};
use crate::run_perf::format::METADATA;

#[derive(Debug, Default)]
pub(crate) struct ResultFolder {
    pub(crate) root: PathBuf,
    pub(crate) layout: Layout,
    pub(crate) metadata: Option<PathBuf>,
    /// Sorted by profile, test and serial.
    pub(crate) results: Vec<ResultFile>,
    pub(crate) errors: Vec<TestError>,
    /// The folders of `errors`, relative to `root`.
    pub(crate) error_folders: Vec<PathBuf>,
    pub(crate) warnings: Vec<Warning>,
}

/// The location of a `result.json`: `PROFILE/TEST/SERIAL/result.json`.
#[derive(Debug)]
pub(crate) struct ResultFile {
    pub(crate) layout: Layout,
    /// The result folder, outside of which nothing is read.
    pub(crate) root: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) profile: String,
    pub(crate) test: String,
    /// Distinguishes the tests of one name in a run: a number (`0000`), or an id in a Weighbridge run.
    pub(crate) serial: String,
    /// The content after another study, if the file is older than the records of its Weighbridge run.
    pub(crate) recomputed: Option<Vec<u8>>,
}

pub(crate) const RESULT: &str = "result.json";
const NO_MESSAGE: &str = "an error without a message";
/// The file with the message of an error, in a folder `__error…__`.
const EXCEPTION: &str = "exception";

impl ResultFolder {
    /// Lists a folder, sorted by name. Serials of run-perf that do not begin with a digit are skipped without
    /// `include_incorrect`, but their errors are listed. Fails if the folder has neither results nor errors nor
    /// metadata, and then names those of its folders that have some.
    pub(crate) fn list(path: &Path, include_incorrect: bool) -> Result<Self, SourceError> {
        let unreadable = |source| SourceError::Unreadable { path: path.to_owned(), source };
        let names = folder_names(path).map_err(unreadable)?;
        let folder = Self::collect(path, &names, include_incorrect);
        if !folder.is_empty() {
            return Ok(folder);
        }
        let is_result_folder = |name: &String| {
            let path = path.join(name);
            folder_names(&path).is_ok_and(|names| !Self::collect(&path, &names, include_incorrect).is_empty())
        };
        let folders = names.into_iter().filter(is_result_folder).collect();
        Err(SourceError::NoResults { path: path.to_owned(), folders, unreadable: folder.warnings })
    }

    fn is_empty(&self) -> bool {
        self.metadata.is_none() && self.results.is_empty() && self.errors.is_empty()
    }

    /// `names` are those of the folders in `path`.
    fn collect(path: &Path, names: &[String], include_incorrect: bool) -> Self {
        let mut folder = Self { root: path.to_owned(), ..Self::default() };
        if path.join(RUN_FILE).is_file() || path.join(JOURNAL).is_file() {
            folder.layout = Layout::Weighbridge;
        }
        let metadata = match folder.layout {
            Layout::RunPerf => METADATA,
            Layout::Weighbridge => RUN_FILE,
        };
        folder.metadata = Some(path.join(metadata)).filter(|path| path.is_file());
        folder.collect_level(path, names, &mut Vec::new(), include_incorrect);
        folder
    }

    /// `names` are folders in `path`; `parents` are its profile, test and serial, as far as it is below them.
    fn collect_level(&mut self, path: &Path, names: &[String], parents: &mut Vec<String>, include_incorrect: bool) {
        for name in names {
            let child = path.join(name);
            if name.starts_with("__error") && name.ends_with("__") {
                self.errors.push(read_error(&self.root, &child, parents));
                self.error_folders.push(parents.iter().collect::<PathBuf>().join(name));
                continue;
            }
            if let [profile, test] = &parents[..] {
                // A serial of a Weighbridge run may be an id instead of a number.
                let is_correct = self.layout == Layout::Weighbridge || name.starts_with(|c: char| c.is_ascii_digit());
                if is_correct || include_incorrect {
                    self.collect_result(&child, [profile, test, name].map(String::clone));
                }
            }
            // A serial's folder has errors only in run-perf's layout; in a Weighbridge run its result file has them.
            if parents.len() < 2 || (parents.len() == 2 && self.layout == Layout::RunPerf) {
                match folder_names(&child) {
                    Ok(names) => {
                        parents.push(name.clone());
                        self.collect_level(&child, &names, parents, include_incorrect);
                        parents.pop();
                    }
                    Err(error) => {
                        let kind = WarningKind::unreadable(error);
                        self.warnings.push(Warning { path: child, kind });
                    }
                }
            }
        }
    }

    fn collect_result(&mut self, folder: &Path, [profile, test, serial]: [String; 3]) {
        let path = folder.join(RESULT);
        let metadata = relative_to(&self.root, &path).and_then(|path| contained_file::metadata(&self.root, path));
        match metadata {
            Ok(_) => {
                let (layout, root) = (self.layout, self.root.clone());
                self.results.push(ResultFile { layout, root, path, profile, test, serial, recomputed: None })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.warnings.push(Warning { path, kind: WarningKind::unreadable(error) }),
        }
    }
}

/// Reads a folder `__error…__` in a profile, test or serial (`parents`).
fn read_error(root: &Path, path: &Path, parents: &[String]) -> TestError {
    let location: Vec<&str> = parents.iter().map(String::as_str).chain(["*"; 3]).take(3).collect();
    // An error whose message cannot be read is an error all the same; a Python exception may have no message.
    let message = files::read(root, &path.join(EXCEPTION)).ok().flatten().unwrap_or_default();
    let message = String::from_utf8_lossy(&message);
    // Control characters, such as the colours of a traceback, would corrupt whatever the message is printed into.
    let is_unprintable = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    let message = match message.trim_end() {
        "" => NO_MESSAGE.to_owned(),
        message => message.replace(is_unprintable, "\u{fffd}"),
    };
    TestError { location: location.join("/"), message }
}

/// The sorted names of the folders in a folder, except hidden ones and those whose names are not UTF-8.
fn folder_names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.starts_with('.') && entry.path().is_dir() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text\n").unwrap();
        }
        root
    }

    #[test]
    fn errors_are_always_listed_and_non_numeric_serials_only_with_incorrect_results() {
        let root = folder_with(&[
            "RUNPERF_METADATA",
            "B/fio/0000/result.json",
            "A/fio/0001/result.json",
            "A/fio/0001/__error0__/exception",
            "A/fio/__error0__/exception",
            "A/fio/failed/result.json",
            "A/fio/failed/__error0__/exception",
            "A/.hidden/0000/result.json",
            "__error1__/details",
            "A/fio/0002/other.json",
        ]);
        let correct = ResultFolder::list(root.path(), false).unwrap();
        let locations = |folder: &ResultFolder| -> Vec<String> {
            folder.results.iter().map(|file| format!("{}/{}/{}", file.profile, file.test, file.serial)).collect()
        };
        assert_eq!(locations(&correct), ["A/fio/0001", "B/fio/0000"]);
        assert!(correct.metadata.is_some());
        let all = ResultFolder::list(root.path(), true).unwrap();
        assert_eq!(locations(&all), ["A/fio/0001", "A/fio/failed", "B/fio/0000"]);
        let errors: Vec<_> = correct.errors.iter().map(|error| (error.id(), error.message.as_str())).collect();
        let id = |location: &str| format!("{location}:./ERROR/ERROR/ERROR.error");
        let expected = [
            (id("A/fio/0001"), "text"),
            (id("A/fio/*"), "text"),
            (id("A/fio/failed"), "text"),
            (id("*/*/*"), NO_MESSAGE),
        ];
        assert_eq!(errors, expected);
        assert_eq!(all.errors, correct.errors);
    }

    #[test]
    fn an_exception_without_a_message_is_an_error() {
        let root = folder_with(&["A/fio/0/__error0__/exception"]);
        fs::write(root.path().join("A/fio/0/__error0__/exception"), "\n").unwrap();
        let folder = ResultFolder::list(root.path(), false).unwrap();
        assert_eq!(folder.errors, [TestError { location: "A/fio/0".to_owned(), message: NO_MESSAGE.to_owned() }]);
    }

    // Control characters of a traceback made a JUnit report that no parser takes.
    #[test]
    fn control_characters_of_an_exception_are_replaced() {
        let root = folder_with(&["A/fio/0/__error0__/exception"]);
        fs::write(root.path().join("A/fio/0/__error0__/exception"), "\u{1b}[31mno\tdisk\nat all\0").unwrap();
        let folder = ResultFolder::list(root.path(), false).unwrap();
        assert_eq!(folder.errors[0].message, "\u{fffd}[31mno\tdisk\nat all\u{fffd}");
    }

    #[test]
    fn a_folder_without_results_is_rejected() {
        let root = folder_with(&["A/fio/0000/other.json"]);
        assert!(matches!(ResultFolder::list(root.path(), false), Err(SourceError::NoResults { .. })));
        assert!(matches!(ResultFolder::list(&root.path().join("no"), false), Err(SourceError::Unreadable { .. })));
    }

    #[test]
    fn a_folder_whose_results_cannot_be_read_is_rejected_with_the_reason() {
        let root = folder_with(&["A/fio/0000/other.json"]);
        let loops = root.path().join("A/fio/0000/result.json");
        std::os::unix::fs::symlink(&loops, &loops).unwrap();
        let message = ResultFolder::list(root.path(), false).unwrap_err().to_string();
        assert!(message.contains(&format!("RUNPERF_METADATA; {}: cannot be read: ", loops.display())), "{message}");
    }
}
