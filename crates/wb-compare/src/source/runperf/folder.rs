//! Which files of a folder hold results.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::weighbridge::{JOURNAL, RUN_FILE};
use super::super::{SourceError, Warning, WarningKind};
use crate::build::TestError;

/// What a folder holds.
#[derive(Debug, Default)]
pub(crate) struct ResultFolder {
    pub(crate) layout: Layout,
    pub(crate) metadata: Option<PathBuf>,
    pub(crate) results: Vec<ResultFile>,
    pub(crate) errors: Vec<TestError>,
    pub(crate) warnings: Vec<Warning>,
}

/// Whose results a folder holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// run-perf's, with pbench's results.
    #[default]
    RunPerf,
    /// A run of this program.
    Weighbridge,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RunPerf => "a result folder of run-perf",
            Self::Weighbridge => "a run of Weighbridge",
        })
    }
}

impl Layout {
    /// The file that says what a run is.
    fn metadata(self) -> &'static str {
        match self {
            Self::RunPerf => METADATA,
            Self::Weighbridge => RUN_FILE,
        }
    }
}

/// A `result.json`.
#[derive(Debug)]
pub(crate) struct ResultFile {
    pub(crate) layout: Layout,
    pub(crate) path: PathBuf,
    pub(crate) profile: String,
    pub(crate) test: String,
    pub(crate) serial: String,
    /// What takes the place of the file's text, which is not that of its run's records.
    pub(crate) studied: Option<Vec<u8>>,
}

/// The file of metadata in a run.
pub(crate) const METADATA: &str = "RUNPERF_METADATA";
/// The file of results in a test.
pub(crate) const RESULT: &str = "result.json";
const NO_TEXT: &str = "an error without a text";

impl ResultFolder {
    /// Lists a folder, sorted by name: every error, and serials that begin with no digit only with `include_incorrect`.
    ///
    /// # Errors
    /// When it cannot be read, or holds no results: then with the folders in it that hold some.
    pub(crate) fn list(path: &Path, include_incorrect: bool) -> Result<Self, SourceError> {
        let unreadable = |source| SourceError::Unreadable { path: path.to_owned(), source };
        let names = children(path).map_err(unreadable)?;
        let folder = Self::of_children(path, &names, include_incorrect);
        if !folder.is_empty() {
            return Ok(folder);
        }
        let has_results = |name: &String| {
            let path = path.join(name);
            children(&path).is_ok_and(|names| !Self::of_children(&path, &names, include_incorrect).is_empty())
        };
        let folders = names.into_iter().filter(has_results).collect();
        Err(SourceError::NoResults { path: path.to_owned(), folders })
    }

    /// Whether it holds neither results nor metadata.
    fn is_empty(&self) -> bool {
        self.metadata.is_none() && self.results.is_empty() && self.errors.is_empty()
    }

    /// Lists a folder that has these folders in it.
    fn of_children(path: &Path, profiles: &[String], include_incorrect: bool) -> Self {
        let mut folder = Self::default();
        if path.join(RUN_FILE).is_file() || path.join(JOURNAL).is_file() {
            folder.layout = Layout::Weighbridge;
        }
        folder.metadata = Some(path.join(folder.layout.metadata())).filter(|path| path.is_file());
        folder.collect(path, profiles, &mut Vec::new(), include_incorrect);
        folder
    }

    /// Takes what lies below `path`, which is as deep as `above` has names.
    fn collect(&mut self, path: &Path, names: &[String], above: &mut Vec<String>, include_incorrect: bool) {
        for name in names {
            let below = path.join(name);
            if name.starts_with("__error") && name.ends_with("__") {
                self.errors.push(error(&below, above));
                continue;
            }
            if let [profile, test] = &above[..] {
                // A test of this program may be named instead of numbered.
                let odd = self.layout == Layout::RunPerf && !name.starts_with(|c: char| c.is_ascii_digit());
                if !odd || include_incorrect {
                    self.collect_result(&below, [profile, test, name].map(String::clone));
                }
            }
            // run-perf's errors lie in a serial's folder at the deepest; this program has its own in the results.
            if above.len() < 2 || (above.len() == 2 && self.layout == Layout::RunPerf) {
                match children(&below) {
                    Ok(names) => {
                        above.push(name.clone());
                        self.collect(&below, &names, above, include_incorrect);
                        above.pop();
                    }
                    Err(error) => {
                        let what = WarningKind::unreadable(error);
                        self.warnings.push(Warning { path: below, kind: what });
                    }
                }
            }
        }
    }

    /// Takes the results in the folder of a serial, if it has any; `names` are its profile, test and serial.
    fn collect_result(&mut self, folder: &Path, [profile, test, serial]: [String; 3]) {
        let path = folder.join(RESULT);
        match fs::metadata(&path) {
            Ok(_) => self.results.push(ResultFile { layout: self.layout, path, profile, test, serial, studied: None }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.warnings.push(Warning { path, kind: WarningKind::unreadable(error) }),
        }
    }
}

fn error(path: &Path, above: &[String]) -> TestError {
    let text = fs::read(path.join("exception")).map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
    let place: Vec<&str> = above.iter().map(String::as_str).chain(["*"; 3]).take(3).collect();
    // An exception that cannot be read is an error all the same; Python's may have no text.
    let text = text.ok().filter(|text| !text.is_empty());
    // A coloured traceback would colour, or break, whatever it is printed into.
    let is_unprintable = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    let text = text.map(|text| text.replace(is_unprintable, "\u{fffd}"));
    TestError { place: place.join("/"), text: text.unwrap_or_else(|| NO_TEXT.to_owned()) }
}

/// The names of the folders in a folder, sorted; hidden ones and names that are no text are left out.
fn children(path: &Path) -> io::Result<Vec<String>> {
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

    fn made(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text\n").unwrap();
        }
        root
    }

    #[test]
    fn errors_are_always_listed_and_odd_serials_only_with_incorrect_results() {
        let root = made(&[
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
        let ids = |folder: &ResultFolder| -> Vec<String> {
            folder.results.iter().map(|it| format!("{}/{}/{}", it.profile, it.test, it.serial)).collect()
        };
        assert_eq!(ids(&correct), ["A/fio/0001", "B/fio/0000"]);
        assert!(correct.metadata.is_some());
        let all = ResultFolder::list(root.path(), true).unwrap();
        assert_eq!(ids(&all), ["A/fio/0001", "A/fio/failed", "B/fio/0000"]);
        let errors: Vec<_> = correct.errors.iter().map(|error| (error.id(), error.text.as_str())).collect();
        let id = |place: &str| format!("{place}:./ERROR/ERROR/ERROR.error");
        let expected =
            [(id("A/fio/0001"), "text"), (id("A/fio/*"), "text"), (id("A/fio/failed"), "text"), (id("*/*/*"), NO_TEXT)];
        assert_eq!(errors, expected);
        assert_eq!(all.errors, correct.errors);
    }

    #[test]
    fn an_exception_without_a_text_is_an_error() {
        let root = made(&["A/fio/0/__error0__/exception"]);
        fs::write(root.path().join("A/fio/0/__error0__/exception"), "\n").unwrap();
        let folder = ResultFolder::list(root.path(), false).unwrap();
        assert_eq!(folder.errors, [TestError { place: "A/fio/0".to_owned(), text: NO_TEXT.to_owned() }]);
    }

    #[test]
    fn control_characters_of_an_exception_are_replaced() {
        let root = made(&["A/fio/0/__error0__/exception"]);
        fs::write(root.path().join("A/fio/0/__error0__/exception"), "\u{1b}[31mno\tdisk\nat all\0").unwrap();
        let folder = ResultFolder::list(root.path(), false).unwrap();
        assert_eq!(folder.errors[0].text, "\u{fffd}[31mno\tdisk\nat all\u{fffd}");
    }

    #[test]
    fn a_folder_without_results_is_refused() {
        let root = made(&["A/fio/0000/other.json"]);
        assert!(matches!(ResultFolder::list(root.path(), false), Err(SourceError::NoResults { .. })));
        assert!(matches!(ResultFolder::list(&root.path().join("no"), false), Err(SourceError::Unreadable { .. })));
    }
}
