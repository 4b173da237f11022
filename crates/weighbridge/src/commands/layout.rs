//! Writes a run in the layout of run-perf, into a folder of its own.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wb_compare::run_metadata;
use wb_record::{RunFile, RunFolder};
use wb_report::run_perf::{ERROR_FILES, LayoutFile, files};
use wb_results::Study;
use wb_sys::output_file;

use crate::console::message;
use crate::error::Error;

const METADATA: &str = "RUNPERF_METADATA";
/// The metadata key with the run that the folder was written from.
const RUN_KEY: &str = "weighbridge_run";

/// Refuses a folder with anything that was not written from `run`, before minutes of measuring. `run` may be new.
pub(super) fn check(folder: &Path, run: &Path) -> Result<(), Error> {
    let unreadable = Error::file("read", folder);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(&unreadable)?.collect::<io::Result<Vec<_>>>().map_err(&unreadable)?,
    };
    let is_run = |path: &Path| path.canonicalize().ok().zip(run.canonicalize().ok()).is_some_and(|(a, b)| a == b);
    let occupied = |help: String| {
        let what =
            format!("{} is not empty: expected a new folder, or one that was written from this run", folder.display());
        Err(Error::Usage { what, help })
    };
    if is_run(folder) || entries.iter().any(|entry| entry.file_name() == "run.json") {
        return occupied(
            "it is a Weighbridge run: name another folder; `run-perf --layout weighbridge` resumes it".to_owned(),
        );
    }
    if entries.iter().all(|entry| is_run(&entry.path())) {
        return Ok(());
    }
    let run_file = RunFolder::open(run).and_then(|run| run.run_file()).ok();
    let metadata = fs::read_to_string(folder.join(METADATA)).unwrap_or_default();
    let written_from = metadata.lines().find_map(|line| line.strip_prefix(RUN_KEY)?.strip_prefix(':'));
    match run_file.as_ref().and_then(identity) {
        Some(identity) if written_from == Some(identity.as_str()) => Ok(()),
        _ => occupied("name another folder: nothing that exists is replaced".to_owned()),
    }
}

/// Writes the folder, also again after more was measured.
pub(super) fn write(folder: &Path, run: &Path, study: &Study) -> Result<(), Error> {
    let run = RunFolder::open(run)?;
    let Some(identity) = identity(&run.run_file()?) else { return Ok(()) };
    let (mut metadata, warnings) = run_metadata(&run)?;
    warnings.iter().for_each(|warning| message!("warning: {warning}"));
    metadata.others.insert(RUN_KEY.to_owned(), identity);
    metadata.version = metadata.version.map(|version| format!("weighbridge {version}"));
    let metadata = LayoutFile { path: METADATA.into(), text: metadata.to_lines() };
    let files = files(study).map_err(|error| Error::Internal(error.to_string()))?;
    // The metadata are first: they tell a later invocation that the folder is this run's.
    for LayoutFile { path, text } in std::iter::once(&metadata).chain(&files) {
        let path = folder.join(path);
        let created = path.parent().map_or(Ok(()), fs::create_dir_all);
        created.and_then(|()| output_file::write(&path, text.as_bytes())).map_err(Error::file("write", &path))?;
    }
    let written: BTreeSet<PathBuf> = files.iter().filter_map(|file| Some(folder.join(file.path.parent()?))).collect();
    remove_outdated_errors(folder, 0, &written)?;
    message!("run-perf's layout: {}", folder.display());
    Ok(())
}

/// Identifies a run among all others; `None` if it has measured nothing.
fn identity(run: &RunFile) -> Option<String> {
    let first = run.invocations.first()?;
    Some(format!("{} {}", first.started, first.seed))
}

/// Removes errors of cells measured since, `PROFILE/TEST/SERIAL/__error…`, unless they have files not written here.
fn remove_outdated_errors(folder: &Path, level: usize, written: &BTreeSet<PathBuf>) -> Result<(), Error> {
    const SERIAL: usize = 3;
    for entry in fs::read_dir(folder).map_err(Error::file("read", folder))? {
        let entry = entry.map_err(Error::file("read", folder))?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if level < SERIAL {
            remove_outdated_errors(&path, level + 1, written)?;
        } else if name.as_encoded_bytes().starts_with(b"__error") && !written.contains(&path) {
            let names = fs::read_dir(&path).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
            let names: Vec<_> = names.map_err(Error::file("read", &path))?;
            if names.iter().all(|name| ERROR_FILES.iter().any(|known| name == OsStr::new(known))) {
                fs::remove_dir_all(&path).map_err(Error::file("remove", &path))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_new_folder_may_be_written() {
        let lab = tempfile::tempdir().unwrap();
        let [folder, run] = ["results", "run"].map(|name| lab.path().join(name));
        assert!(check(&folder, &run).is_ok(), "a new one");
        fs::create_dir(&folder).unwrap();
        assert!(check(&folder, &run).is_ok(), "an empty one");
        fs::create_dir(folder.join(".weighbridge")).unwrap();
        assert!(check(&folder, &folder.join(".weighbridge")).is_ok(), "the run alone is in it");
        assert!(check(&folder, &run).is_err(), "another run is in it");
        fs::write(folder.join("page.html"), "x").unwrap();
        assert!(check(&folder, &folder.join(".weighbridge")).is_err(), "a file of the user");
        fs::write(folder.join(METADATA), format!("{RUN_KEY}:2020-01-01T00:00:00Z 1\n")).unwrap();
        assert!(check(&folder, &folder.join(".weighbridge")).is_err(), "written from another run");
    }

    #[test]
    fn errors_with_files_of_others_are_left() {
        let lab = tempfile::tempdir().unwrap();
        let serial = lab.path().join("P/fio/0000");
        for file in
            ["__error0__/exception", "__error1__/exception", "__error2__/exception", "__error2__/FILES/x", "x/y"]
        {
            let path = serial.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        remove_outdated_errors(lab.path(), 0, &BTreeSet::from([serial.join("__error1__")])).unwrap();
        let left = ["__error0__", "__error1__", "__error2__", "x"].map(|name| serial.join(name).exists());
        assert_eq!(left, [false, true, true, true]);
    }
}
