//! run-perf's layout: what the place of a file says of it. Results lie in `PROFILE/TEST/SERIAL/result.json`; what went
//! wrong lies in folders `__error…__`, beside these or in them.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use wb_model::{ProfileName, Serial};

use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::formats::pbench;
use crate::naming::{slug, valid_name};

/// What stands at the top of a build.
const METADATA: &str = "RUNPERF_METADATA";
/// A test's results.
const RESULT: &str = "result.json";
/// An error's text.
pub(crate) const EXCEPTION: &str = "exception";

/// The profile and the serial that folders say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResultLocation {
    pub(crate) profile: Option<ProfileName>,
    pub(crate) serial: Option<Serial>,
}

/// Whether a folder of this name holds an error.
pub(crate) fn is_error_folder(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("__error") && name.ends_with("__"))
}

/// Whether a file is the text of an error.
pub(crate) fn is_exception_file(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name);
    path.file_name() == Some(OsStr::new(EXCEPTION)) && folder.is_some_and(is_error_folder)
}

/// Whether a file lies under a serial that is no number: run-perf's users rename what is not to be compared.
pub(crate) fn has_non_numeric_serial(path: &Path) -> bool {
    let serial = ancestor_name(path, 1).filter(|serial| !serial.starts_with(|c: char| c.is_ascii_digit()));
    path.file_name() == Some(OsStr::new(RESULT)) && serial.is_some() && is_in_layout(path)
}

/// The place of a file of results; nothing of one that lies elsewhere.
pub(crate) fn locate_result(path: &Path) -> ResultLocation {
    let Ok(path) = std::path::absolute(path) else { return ResultLocation::default() };
    let serial: Option<Serial> = ancestor_name(&path, 1).and_then(|serial| slug(serial).parse().ok());
    match serial {
        Some(serial) if matches!(serial, Serial::Position(_)) || is_in_layout(&path) => {
            ResultLocation::of(&path, 3, Some(serial))
        }
        _ => ResultLocation::default(),
    }
}

/// Where in a build an error lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorLevel {
    Build,
    Profile,
    Test,
    Serial,
    /// In no build, or deeper than a serial.
    Elsewhere,
}

impl ErrorLevel {
    /// Of an error's text. Its build is the nearest folder with metadata, or else the folder that was imported.
    fn of(path: &Path, within: Option<&Path>) -> Self {
        let within = within.and_then(|folder| std::path::absolute(folder).ok());
        let levels = [Self::Build, Self::Profile, Self::Test, Self::Serial];
        let at = |is_root: &dyn Fn(&Path) -> bool| {
            levels.into_iter().zip(path.ancestors().skip(2)).find(|(_, folder)| is_root(folder)).map(|(level, _)| level)
        };
        at(&is_build).or_else(|| at(&|folder| Some(folder) == within.as_deref())).unwrap_or(Self::Elsewhere)
    }
}

/// An error as a cell that failed, whose name no other error of its build has. `within` is the folder that was imported,
/// if one was.
pub(crate) fn read_error_cell(path: &Path, within: Option<&Path>, text: &str) -> (ResultLocation, ForeignResults) {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let names =
        |levels: &[usize]| levels.iter().filter_map(|level| ancestor_name(&full, *level)).collect::<Vec<_>>().join("-");
    let (profile, test, error) = match ErrorLevel::of(&full, within) {
        // A name of its own, since the default profile may have errors as well.
        ErrorLevel::Build => (None, None, format!("build-{}", names(&[1]))),
        ErrorLevel::Profile => (Some(2), None, names(&[1])),
        ErrorLevel::Test => (Some(3), ancestor_name(&full, 2), names(&[1])),
        ErrorLevel::Serial => (Some(4), ancestor_name(&full, 3), names(&[2, 1])),
        ErrorLevel::Elsewhere => (None, None, join_relative_path(&full, within)),
    };
    // run-perf numbers attempts at a test from 0, without leading zeros: those are not serials.
    let serial = match profile {
        Some(4) => ancestor_name(&full, 2).and_then(|serial| slug(serial).parse().ok()),
        _ => None,
    };
    let place = profile.map_or_else(ResultLocation::default, |profile| ResultLocation::of(&full, profile, serial));
    let (test, summary) = match test {
        Some(test) => pbench::test(test),
        None => (valid_name("run-perf"), "what run-perf itself did".to_owned()),
    };
    let mut cell = ForeignCell::new(test, summary);
    cell.axis("error", error);
    let words: Vec<&str> = text.split_whitespace().collect();
    let said = if words.is_empty() { "an error without a text".to_owned() } else { words.join(" ") };
    cell.samples.push(ForeignSample { failure: Some(said), ..ForeignSample::at(EXCEPTION) });
    let mut foreign = ForeignResults::default();
    foreign.add(cell);
    (place, foreign)
}

/// The folders from the imported one down to an error's, joined; of an error that was named itself, its own.
fn join_relative_path(path: &Path, within: Option<&Path>) -> String {
    let within = within.and_then(|folder| std::path::absolute(folder).ok());
    let folder = path.parent().unwrap_or(path);
    let relative = within.and_then(|within| folder.strip_prefix(within).ok()).or(folder.file_name().map(Path::new));
    let names = relative.into_iter().flat_map(Path::components);
    names.map(|name| name.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("-")
}

impl ResultLocation {
    fn of(path: &Path, profile: usize, serial: Option<Serial>) -> Self {
        Self { profile: ancestor_name(path, profile).and_then(|name| ProfileName::new(name).ok()), serial }
    }
}

/// The name of the folder so many levels above a file.
fn ancestor_name(path: &Path, levels: usize) -> Option<&str> {
    path.ancestors().nth(levels)?.file_name()?.to_str()
}

fn is_build(folder: &Path) -> bool {
    folder.join(METADATA).is_file()
}

/// Whether a file lies as deep in a build as results do, or beside results that are numbered.
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

    /// A build's folder; empty files in it say that they are there.
    fn build(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files.iter().map(|file| root.path().join(file)) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::File::create(file).unwrap();
        }
        root
    }

    fn format_location(place: &ResultLocation) -> String {
        let profile = place.profile.as_ref().map_or("-", |profile| profile.as_str());
        format!("{profile} {}", place.serial.as_ref().map_or("-".to_owned(), ToString::to_string))
    }

    #[test]
    fn folders_say_the_profile_and_the_serial() {
        assert_eq!(format_location(&locate_result(Path::new("b/Tuned/fio/0003/result.json"))), "Tuned 0003");
        for elsewhere in ["b/Tuned/fio/result.json", "result.json", "/"] {
            assert_eq!(locate_result(Path::new(elsewhere)), ResultLocation::default(), "{elsewhere}");
        }
    }

    #[test]
    fn serials_that_are_no_numbers_are_put_aside() {
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
    fn errors_are_cells_that_failed_each_with_a_name_of_its_own() {
        let root = build(&["b/RUNPERF_METADATA"]);
        let of = |folder: &str, path: &str, text: &str| {
            let folder = root.path().join(folder);
            let (place, foreign) = read_error_cell(&folder.join(path), Some(&folder), text);
            let cell = &foreign.cells[0];
            format!(
                "{} {} {}: {}",
                format_location(&place),
                cell.test,
                cell.case(),
                cell.samples[0].failure.as_ref().unwrap()
            )
        };
        for folder in ["b", "without-metadata"] {
            let of = |path: &str, text: &str| of(folder, path, text);
            let numbered = "P 0001 pbench-fio error=0001-__error0__: no disk";
            assert_eq!(of("P/fio/0001/__error0__/exception", "no\n disk\n"), numbered);
            assert_eq!(of("P/fio/2/__error0__/exception", "x"), "P - pbench-fio error=2-__error0__: x");
            assert_eq!(of("P/fio/__error0__/exception", "x"), "P - pbench-fio error=__error0__: x");
            assert_eq!(of("P/__error0__/exception", "x"), "P - run-perf error=__error0__: x");
            assert_eq!(of("__error0__/exception", ""), "- - run-perf error=build-__error0__: an error without a text");
        }
        assert_eq!(
            of(".", "a/P/fio/0/deeper/__error0__/exception", "x"),
            "- - run-perf error=a-P-fio-0-deeper-__error0__: x"
        );
    }
}
