use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use wb_model::Sha256;

/// Cache of the SHA-256 of files; a file is read again only if it has changed.
#[derive(Debug, Default)]
pub(super) struct FileHashes(Mutex<HashMap<PathBuf, (FileStamp, Sha256)>>);

/// Metadata that changes with each write to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified_ns: (i64, i64),
    changed_ns: (i64, i64),
}

impl FileHashes {
    pub(super) fn hash(&self, path: &Path) -> io::Result<Sha256> {
        let stamp = FileStamp::read(path)?;
        // The map is consistent even if a thread panicked: each insertion is complete.
        let cache = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, hash)) = cache().get(path).filter(|(before, _)| *before == stamp) {
            return Ok(hash.clone());
        }
        let hash = Sha256::of_reader(File::open(path)?)?;
        cache().insert(path.to_owned(), (stamp, hash.clone()));
        Ok(hash)
    }
}

impl FileStamp {
    fn read(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified_ns: (metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_hashed_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("load.sh");
        let hashes = FileHashes::default();
        for content in ["sleep 1", "sleep 20", "sleep 30"] {
            // Replaced by renaming, as editors do: the inode differs, whatever the resolution of the clock.
            fs::write(folder.path().join("new"), content).unwrap();
            fs::rename(folder.path().join("new"), &path).unwrap();
            assert_eq!(hashes.hash(&path).unwrap(), Sha256::digest(content.as_bytes()));
            assert_eq!(hashes.hash(&path).unwrap(), Sha256::digest(content.as_bytes()), "the second time");
        }
        assert!(hashes.hash(&folder.path().join("gone")).is_err());
    }
}
