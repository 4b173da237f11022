//! Hashes of files that are asked for again and again.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use wb_model::Sha256;

/// The SHA-256 of files, read anew only where a file is not as it was.
#[derive(Debug, Default)]
pub(super) struct FileHashes(Mutex<HashMap<PathBuf, (FileStamp, Sha256)>>);

/// What changes with each write to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified_ns: (i64, i64),
    changed_ns: (i64, i64),
}

impl FileHashes {
    /// The hash of what is in a file now.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn hash(&self, path: &Path) -> io::Result<Sha256> {
        let stamp = FileStamp::of(path)?;
        // A hash is put in whole, also by a thread that panics later.
        let cached = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, hash)) = cached().get(path).filter(|(before, _)| *before == stamp) {
            return Ok(hash.clone());
        }
        let hash = Sha256::of_reader(File::open(path)?)?;
        cached().insert(path.to_owned(), (stamp, hash.clone()));
        Ok(hash)
    }
}

impl FileStamp {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            modified_ns: (found.mtime(), found.mtime_nsec()),
            changed_ns: (found.ctime(), found.ctime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_again_has_another_hash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("load.sh");
        let hashes = FileHashes::default();
        for content in ["sleep 1", "sleep 20", "sleep 30"] {
            // In the place of the other, as editors do: the inode tells them apart whatever the clock's resolution.
            fs::write(folder.path().join("new"), content).unwrap();
            fs::rename(folder.path().join("new"), &path).unwrap();
            assert_eq!(hashes.hash(&path).unwrap(), Sha256::of(content.as_bytes()));
            assert_eq!(hashes.hash(&path).unwrap(), Sha256::of(content.as_bytes()), "the second time");
        }
        assert!(hashes.hash(&folder.path().join("gone")).is_err());
    }
}
