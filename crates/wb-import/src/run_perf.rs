//! run-perf's folder layout, from which profile and serial of a file are derived. Results are in
//! `PROFILE/TEST/SERIAL/result.json`; errors are in folders `__error…__`, at any of these levels.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use wb_model::{ProfileName, Serial};

use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::formats::pbench;
use crate::naming::{slug, valid_name};

/// Metadata file in the folder of a build.
const METADATA: &str = "RUNPERF_METADATA";
const RESULT: &str = "result.json";
pub(crate) const EXCEPTION: &str = "exception";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResultLocation {
    pub(crate) profile: Option<ProfileName>,
    pub(crate) serial: Option<Serial>,
    /// Name of the test's folder: that of its benchmark, or the one that the user gave it with `__NAME__`.
    pub(crate) test: Option<String>,
}

pub(crate) fn is_error_folder(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("__error") && name.ends_with("__"))
}

pub(crate) fn is_exception_file(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name);
    path.file_name() == Some(OsStr::new(EXCEPTION)) && folder.is_some_and(is_error_folder)
}

/// Whether the serial is not a number: users of run-perf rename serials to exclude them from comparisons.
pub(crate) fn has_non_numeric_serial(path: &Path) -> bool {
    let serial = ancestor_name(path, 1).filter(|serial| !serial.starts_with(|c: char| c.is_ascii_digit()));
    path.file_name() == Some(OsStr::new(RESULT)) && serial.is_some() && is_in_layout(path)
}

/// Location of a file of results; empty if it is not in run-perf's layout.
pub(crate) fn locate_result(path: &Path) -> ResultLocation {
    let Ok(path) = std::path::absolute(path) else { return ResultLocation::default() };
    let serial: Option<Serial> = ancestor_name(&path, 1).and_then(|serial| slug(serial).parse().ok());
    match serial {
        Some(serial) if matches!(serial, Serial::Position(_)) || is_in_layout(&path) => ResultLocation {
            test: ancestor_name(&path, 2).map(str::to_owned),
            ..ResultLocation::new(&path, 3, Some(serial))
        },
        _ => ResultLocation::default(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorLevel {
    Build,
    Profile,
    Test,
    Serial,
    /// Not in a build, or below the level of a serial.
    Elsewhere,
}

impl ErrorLevel {
    /// The build of an error is the nearest folder with metadata, or else the imported folder.
    fn new(path: &Path, root: Option<&Path>) -> Self {
        let root = root.and_then(|folder| std::path::absolute(folder).ok());
        let levels = [Self::Build, Self::Profile, Self::Test, Self::Serial];
        let at = |is_root: &dyn Fn(&Path) -> bool| {
            levels.into_iter().zip(path.ancestors().skip(2)).find(|(_, folder)| is_root(folder)).map(|(level, _)| level)
        };
        at(&is_build).or_else(|| at(&|folder| Some(folder) == root.as_deref())).unwrap_or(Self::Elsewhere)
    }
}

/// Converts an error into a failed cell with a name that is unique in its build. `root` is the imported folder, if any.
pub(crate) fn read_error_cell(path: &Path, root: Option<&Path>, text: &str) -> (ResultLocation, ForeignResults) {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let names =
        |levels: &[usize]| levels.iter().filter_map(|level| ancestor_name(&path, *level)).collect::<Vec<_>>().join("-");
    let (profile, test, error) = match ErrorLevel::new(&path, root) {
        // A distinct name, as the default profile may have errors too.
        ErrorLevel::Build => (None, None, format!("build-{}", names(&[1]))),
        ErrorLevel::Profile => (Some(2), None, names(&[1])),
        ErrorLevel::Test => (Some(3), ancestor_name(&path, 2), names(&[1])),
        ErrorLevel::Serial => (Some(4), ancestor_name(&path, 3), names(&[2, 1])),
        ErrorLevel::Elsewhere => (None, None, join_relative_path(&path, root)),
    };
    // run-perf numbers attempts at a test from 0, without leading zeros; those are not serials.
    let serial = match profile {
        Some(4) => ancestor_name(&path, 2).and_then(|serial| slug(serial).parse().ok()),
        _ => None,
    };
    let location = profile.map_or_else(ResultLocation::default, |profile| ResultLocation::new(&path, profile, serial));
    let (test, summary) = match test {
        Some(test) => pbench::test(test),
        None => (valid_name("run-perf"), "errors of run-perf".to_owned()),
    };
    let mut cell = ForeignCell::new(test, summary);
    cell.axis("error", error);
    let words: Vec<&str> = text.split_whitespace().collect();
    let message = if words.is_empty() { "error without a message".to_owned() } else { words.join(" ") };
    cell.samples.extend([ForeignSample { failure: Some(message), ..ForeignSample::at(EXCEPTION) }]);
    let mut foreign = ForeignResults::default();
    foreign.add(cell);
    (location, foreign)
}

/// Joins folder names from the imported one down to that of an error; only the last one if the error file itself was
/// given.
fn join_relative_path(path: &Path, root: Option<&Path>) -> String {
    let root = root.and_then(|folder| std::path::absolute(folder).ok());
    let folder = path.parent().unwrap_or(path);
    let relative = root.and_then(|root| folder.strip_prefix(root).ok()).or(folder.file_name().map(Path::new));
    let names = relative.into_iter().flat_map(Path::components);
    names.map(|name| name.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("-")
}

impl ResultLocation {
    fn new(path: &Path, profile: usize, serial: Option<Serial>) -> Self {
        Self { profile: ancestor_name(path, profile).and_then(|name| ProfileName::new(name).ok()), serial, test: None }
    }
}

fn ancestor_name(path: &Path, levels: usize) -> Option<&str> {
    path.ancestors().nth(levels)?.file_name()?.to_str()
}

fn is_build(folder: &Path) -> bool {
    folder.join(METADATA).is_file()
}

/// Whether a file is at the level of results in a build, or next to numbered results.
fn is_in_layout(path: &Path) -> bool {
    let Ok(path) = std::path::absolute(path) else { return false };
    let is_position = |name: &OsStr| matches!(name.to_str().map(str::parse), Some(Ok(Serial::Position(_))));
    let numbered = |test: &Path| {
        fs::read_dir(test).is_ok_and(|serials| serials.flatten().any(|serial| is_position(&serial.file_name())))
    };
    path.ancestors().nth(4).is_some_and(is_build) || path.ancestors().nth(2).is_some_and(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the folder of a build with empty files.
    fn build(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files.iter().map(|file| root.path().join(file)) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::File::create(file).unwrap();
        }
        root
    }

    fn format_location(location: &ResultLocation) -> String {
        let profile = location.profile.as_ref().map_or("-", |profile| profile.as_str());
        format!("{profile} {}", location.serial.as_ref().map_or("-".to_owned(), ToString::to_string))
    }

    #[test]
    fn profile_and_serial_follow_from_folders() {
        assert_eq!(format_location(&locate_result(Path::new("b/Tuned/fio/0003/result.json"))), "Tuned 0003");
        for elsewhere in ["b/Tuned/fio/result.json", "result.json", "/"] {
            assert_eq!(locate_result(Path::new(elsewhere)), ResultLocation::default(), "{elsewhere}");
        }
    }

    #[test]
    fn non_numeric_serials_are_recognized() {
        let root =
            build(&["b/RUNPERF_METADATA", "b/P/fio/odd/result.json", "c/P/fio/0000/x", "c/P/fio/odd/result.json"]);
        for build in ["b", "c"] {
            let path = root.path().join(build).join("P/fio/odd/result.json");
            assert!(has_non_numeric_serial(&path), "{build}");
            assert_eq!(format_location(&locate_result(&path)), "P odd");
        }
        let elsewhere = build(&["fio_2020/1-read/sample1/result.json"]);
        assert!(!has_non_numeric_serial(&elsewhere.path().join("fio_2020/1-read/sample1/result.json")));
        assert!(!has_non_numeric_serial(&root.path().join("c/P/fio/0000/result.json")));
    }

    #[test]
    fn errors_are_failed_cells_with_unique_names() {
        let root = build(&["b/RUNPERF_METADATA"]);
        let describe_error = |folder: &str, path: &str, text: &str| {
            let folder = root.path().join(folder);
            let (location, foreign) = read_error_cell(&folder.join(path), Some(&folder), text);
            let cell = &foreign.cells[0];
            format!("{} {} {}: {}", format_location(&location), cell.test, cell.case(), cell.samples.failures[0].1)
        };
        for folder in ["b", "without-metadata"] {
            let describe_error = |path: &str, text: &str| describe_error(folder, path, text);
            let numbered = "P 0001 pbench-fio error=0001-__error0__: no disk";
            assert_eq!(describe_error("P/fio/0001/__error0__/exception", "no\n disk\n"), numbered);
            assert_eq!(describe_error("P/fio/2/__error0__/exception", "x"), "P - pbench-fio error=2-__error0__: x");
            assert_eq!(describe_error("P/fio/__error0__/exception", "x"), "P - pbench-fio error=__error0__: x");
            assert_eq!(describe_error("P/__error0__/exception", "x"), "P - run-perf error=__error0__: x");
            assert_eq!(
                describe_error("__error0__/exception", ""),
                "- - run-perf error=build-__error0__: error without a message"
            );
        }
        assert_eq!(
            describe_error(".", "a/P/fio/0/deeper/__error0__/exception", "x"),
            "- - run-perf error=a-P-fio-0-deeper-__error0__: x"
        );
    }
}
