//! Lists the result files of a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::weighbridge::{JOURNAL, RUN_FILE};
use super::{SourceError, Warning, WarningKind};
use crate::build::{Layout, TestError};
use crate::run_perf::format::METADATA;

/// The listing of a result folder.
#[derive(Debug, Default)]
pub(crate) struct ResultFolder {
    pub(crate) layout: Layout,
    pub(crate) metadata: Option<PathBuf>,
    pub(crate) results: Vec<ResultFile>,
    pub(crate) errors: Vec<TestError>,
    pub(crate) warnings: Vec<Warning>,
}

/// A `result.json`.
#[derive(Debug)]
pub(crate) struct ResultFile {
    pub(crate) layout: Layout,
    pub(crate) path: PathBuf,
    pub(crate) profile: String,
    pub(crate) test: String,
    pub(crate) serial: String,
    /// Replaces the text of the file if that is inconsistent with the records of its run.
    pub(crate) studied: Option<Vec<u8>>,
}

/// The result file of a test.
pub(crate) const RESULT: &str = "result.json";
const NO_TEXT: &str = "an error without a message";

impl ResultFolder {
    /// Lists a folder, sorted by name: all errors, but serials that do not begin with a digit only with
    /// `include_incorrect`.
    ///
    /// # Errors
    /// If it cannot be read or has no results; in the latter case with the names of its folders that have some.
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

    /// Whether it has neither results nor metadata.
    fn is_empty(&self) -> bool {
        self.metadata.is_none() && self.results.is_empty() && self.errors.is_empty()
    }

    /// Lists a folder with these subfolders.
    fn of_children(path: &Path, profiles: &[String], include_incorrect: bool) -> Self {
        let mut folder = Self::default();
        if path.join(RUN_FILE).is_file() || path.join(JOURNAL).is_file() {
            folder.layout = Layout::Weighbridge;
        }
        let metadata = match folder.layout {
            Layout::RunPerf => METADATA,
            Layout::Weighbridge => RUN_FILE,
        };
        folder.metadata = Some(path.join(metadata)).filter(|path| path.is_file());
        folder.collect(path, profiles, &mut Vec::new(), include_incorrect);
        folder
    }

    /// Collects everything below `path`, whose levels of the layout are `above`.
    fn collect(&mut self, path: &Path, names: &[String], above: &mut Vec<String>, include_incorrect: bool) {
        for name in names {
            let child = path.join(name);
            if name.starts_with("__error") && name.ends_with("__") {
                self.errors.push(error(&child, above));
                continue;
            }
            if let [profile, test] = &above[..] {
                // A serial of a Weighbridge run may be a name instead of a number.
                let is_irregular = self.layout == Layout::RunPerf && !name.starts_with(|c: char| c.is_ascii_digit());
                if !is_irregular || include_incorrect {
                    self.collect_result(&child, [profile, test, name].map(String::clone));
                }
            }
            // run-perf's errors are in a serial's folder at the deepest; those of Weighbridge are part of the results.
            if above.len() < 2 || (above.len() == 2 && self.layout == Layout::RunPerf) {
                match children(&child) {
                    Ok(names) => {
                        above.push(name.clone());
                        self.collect(&child, &names, above, include_incorrect);
                        above.pop();
                    }
                    Err(error) => {
                        let kind = WarningKind::unreadable(error);
                        self.warnings.push(Warning { path: child, kind });
                    }
                }
            }
        }
    }

    /// Adds the result file in the folder of a serial, if there is one; the names are its profile, test and serial.
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
    // An unreadable exception is an error all the same; Python's may have no message.
    let text = text.ok().filter(|text| !text.is_empty());
    // A coloured traceback would corrupt whatever it is printed into.
    let is_unprintable = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    let text = text.map(|text| text.replace(is_unprintable, "\u{fffd}"));
    TestError { place: place.join("/"), text: text.unwrap_or_else(|| NO_TEXT.to_owned()) }
}

/// The sorted names of the folders in a folder, without hidden ones and names that are not UTF-8.
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
    fn errors_are_always_listed_and_irregular_serials_only_with_incorrect_results() {
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
    fn an_exception_without_a_message_is_an_error() {
        let root = folder_with(&["A/fio/0/__error0__/exception"]);
        fs::write(root.path().join("A/fio/0/__error0__/exception"), "\n").unwrap();
        let folder = ResultFolder::list(root.path(), false).unwrap();
        assert_eq!(folder.errors, [TestError { place: "A/fio/0".to_owned(), text: NO_TEXT.to_owned() }]);
    }

    #[test]
    fn control_characters_of_an_exception_are_replaced() {
        let root = folder_with(&["A/fio/0/__error0__/exception"]);
        fs::write(root.path().join("A/fio/0/__error0__/exception"), "\u{1b}[31mno\tdisk\nat all\0").unwrap();
        let folder = ResultFolder::list(root.path(), false).unwrap();
        assert_eq!(folder.errors[0].text, "\u{fffd}[31mno\tdisk\nat all\u{fffd}");
    }

    #[test]
    fn a_folder_without_results_is_refused() {
        let root = folder_with(&["A/fio/0000/other.json"]);
        assert!(matches!(ResultFolder::list(root.path(), false), Err(SourceError::NoResults { .. })));
        assert!(matches!(ResultFolder::list(&root.path().join("no"), false), Err(SourceError::Unreadable { .. })));
    }
}
