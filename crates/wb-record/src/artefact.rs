//! Artefacts: the files of an attempt with their hashes.

use std::collections::BTreeSet;
use std::fs::{self, File};

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Sha256;
use wb_sys::{atomic_file, contained_file};

use crate::RecordError;

/// A file of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artefact {
    /// Its path, relative to the attempt's folder.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// The hash of its content.
    pub sha256: Sha256,
}

impl Artefact {
    /// Writes a file into the attempt's folder and flushes it to the device.
    ///
    /// A path outside the folder is refused, since paths may come from a worker.
    pub fn write(folder: &Path, path: &str, bytes: &[u8]) -> Result<Self, RecordError> {
        let artefact = Self::write_file(folder, path, bytes)?;
        sync_parents(folder, [path])?;
        Ok(artefact)
    }

    /// Like [`Artefact::write`] for several files. Each folder is flushed once, after its files.
    pub fn write_all(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<Vec<Self>, RecordError> {
        let written =
            files.iter().map(|(path, bytes)| Self::write_file(folder, path, bytes)).collect::<Result<_, _>>()?;
        sync_parents(folder, files.iter().map(|(path, _)| path.as_str()))?;
        Ok(written)
    }

    /// Writes a file and flushes its content.
    fn write_file(folder: &Path, path: &str, bytes: &[u8]) -> Result<Self, RecordError> {
        let full = folder.join(path);
        contained_file::require_relative(Path::new(path)).map_err(RecordError::io("write", &full))?;
        let parent = parent_of(folder, path);
        fs::create_dir_all(&parent).map_err(RecordError::io("create", &parent))?;
        let written = File::create_new(&full).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(RecordError::io("write", &full))?;
        Ok(Self { path: path.to_owned(), bytes: bytes.len() as u64, sha256: Sha256::digest(bytes) })
    }

    /// Whether the file exists and is unmodified. `folder` is that of the attempt, relative to the run folder `run`; a
    /// path that leads out of the run, or to something else than a regular file, counts as modified.
    pub fn is_intact(&self, run: &Path, folder: &Path) -> bool {
        self.hash(run, folder).is_ok_and(|sha256| sha256 == self.sha256)
    }

    /// The hash of the file as it is now, of which no more than the recorded number of bytes is read.
    fn hash(&self, run: &Path, folder: &Path) -> io::Result<Sha256> {
        let file = contained_file::open(run, &folder.join(&self.path))?;
        if file.metadata()?.len() != self.bytes {
            return Err(io::Error::other("its length changed"));
        }
        Sha256::of_reader(file.take(self.bytes))
    }

    /// Whether the file exists and is unmodified, given that it was at `time`. A file of a different length is
    /// modified, one whose modification time is before `time` is not, and any other is hashed.
    pub fn is_unchanged_since(&self, run: &Path, folder: &Path, time: SystemTime) -> bool {
        let Ok(file) = contained_file::metadata(run, &folder.join(&self.path)) else { return false };
        let is_older = file.modified().is_ok_and(|modified| modified < time);
        file.len() == self.bytes && (is_older || self.is_intact(run, folder))
    }
}

/// The folder of a file below `folder`.
fn parent_of(folder: &Path, path: &str) -> PathBuf {
    folder.join(path).parent().unwrap_or(folder).to_owned()
}

/// Flushes the entries of the folders of files.
fn sync_parents<'a>(folder: &Path, paths: impl IntoIterator<Item = &'a str>) -> Result<(), RecordError> {
    let parents: BTreeSet<PathBuf> = paths.into_iter().map(|path| parent_of(folder, path)).collect();
    parents.iter().try_for_each(|parent| atomic_file::sync_folder(parent).map_err(RecordError::io("sync", parent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modified_artefact_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let artefact = Artefact::write(folder.path(), "logs/out.txt", b"abc").unwrap();
        let is_intact = || artefact.is_intact(folder.path(), Path::new(""));
        assert!(is_intact());
        for modified in [&b"abd"[..], b"abcd", b"ab"] {
            fs::write(folder.path().join("logs/out.txt"), modified).unwrap();
            assert!(!is_intact());
        }
    }

    #[test]
    fn files_are_written_into_several_folders() {
        let folder = tempfile::tempdir().unwrap();
        let files = [("out.txt".to_owned(), b"abc".to_vec()), ("logs/err.txt".to_owned(), Vec::new())];
        let artefacts = Artefact::write_all(folder.path(), &files).unwrap();
        assert_eq!(artefacts.iter().map(|artefact| artefact.bytes).collect::<Vec<_>>(), [3, 0]);
        assert!(artefacts.iter().all(|artefact| artefact.is_intact(folder.path(), Path::new(""))));
    }

    #[test]
    fn no_artefact_is_written_outside_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["../x", "/etc/x", "", "a/../../x"] {
            assert!(Artefact::write(folder.path(), path, b"").is_err(), "{path}");
        }
    }
}
