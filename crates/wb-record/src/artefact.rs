//! What an attempt leaves: files, listed with their hashes.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Component, Path};
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Sha256;

use crate::{RecordError, files};

/// One file of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artefact {
    /// Its path within the attempt's folder.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its hash.
    pub sha256: Sha256,
}

impl Artefact {
    /// Writes a file into the attempt's folder and flushes it to the device.
    ///
    /// A path that would leave the folder is refused: it may come from a worker.
    pub fn write(folder: &Path, path: &str, bytes: &[u8]) -> Result<Self, RecordError> {
        let full = folder.join(path);
        let stays = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || !stays {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "the path leaves the attempt's folder");
            return Err(RecordError::Io { operation: "write", path: full, source });
        }
        let parent = full.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(RecordError::io("create", parent))?;
        let written = File::create_new(&full).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(RecordError::io("write", &full))?;
        files::sync_folder(parent)?;
        Ok(Self { path: path.to_owned(), bytes: bytes.len() as u64, sha256: Sha256::of(bytes) })
    }

    /// Whether the file is there as it was written.
    pub fn is_intact(&self, folder: &Path) -> bool {
        let read = fs::File::open(folder.join(&self.path)).and_then(Sha256::of_reader);
        read.is_ok_and(|sha256| sha256 == self.sha256)
    }

    /// Whether the file is there as it was written, if it was at `time`: one of another length is not, one that was not
    /// modified since is, and any other is hashed.
    pub fn is_unchanged_since(&self, folder: &Path, time: SystemTime) -> bool {
        let Ok(file) = fs::metadata(folder.join(&self.path)) else { return false };
        let is_older = file.modified().is_ok_and(|modified| modified < time);
        file.len() == self.bytes && (is_older || self.is_intact(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artefact_that_was_changed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let artefact = Artefact::write(folder.path(), "logs/out.txt", b"abc").unwrap();
        assert!(artefact.is_intact(folder.path()));
        fs::write(folder.path().join("logs/out.txt"), b"abd").unwrap();
        assert!(!artefact.is_intact(folder.path()));
    }

    #[test]
    fn no_artefact_leaves_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["../x", "/etc/x", "", "a/../../x"] {
            assert!(Artefact::write(folder.path(), path, b"").is_err(), "{path}");
        }
    }
}
