//! The folder of test files and logs, which leaves nothing behind.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::HashdError;

/// A folder for files that vanish when the process ends, however it ends, unless they are to be kept.
///
/// A file that is not kept loses its name as soon as it is open: the kernel frees it with its last descriptor.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    path: PathBuf,
    is_new: bool,
    keep: bool,
}

impl WorkFolder {
    /// Opens a folder, and creates it if it is missing.
    pub(crate) fn open(path: &Path, keep: bool) -> Result<Self, HashdError> {
        let is_new = !path.exists();
        fs::create_dir_all(path).map_err(|source| HashdError::File { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), is_new, keep })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file of this name for reading and writing; the second value is whether it existed with this size.
    pub(crate) fn open_file(&self, name: &str, reuse_size: Option<u64>) -> Result<(File, bool), HashdError> {
        let path = self.path.join(name);
        let open = || -> io::Result<(File, bool)> {
            let file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
            let is_reused = reuse_size.is_some_and(|size| file.metadata().is_ok_and(|metadata| metadata.len() == size));
            if !is_reused {
                file.set_len(0)?;
            }
            if !self.keep {
                fs::remove_file(&path)?;
            }
            Ok((file, is_reused))
        };
        open().map_err(|source| HashdError::File { path: path.clone(), source })
    }

    /// Bytes of the files with these names that have this size.
    pub(crate) fn reusable_bytes<'a>(&self, names: impl Iterator<Item = &'a str>, size: u64) -> u64 {
        let fits = |name: &&str| fs::metadata(self.path.join(name)).is_ok_and(|metadata| metadata.len() == size);
        names.filter(fits).count() as u64 * size
    }

    /// Free bytes of the file system.
    pub(crate) fn free_bytes(&self) -> Result<u64, HashdError> {
        let figures = rustix::fs::statvfs(&self.path)
            .map_err(|errno| HashdError::File { path: self.path.clone(), source: errno.into() })?;
        Ok(figures.f_bavail.saturating_mul(figures.f_frsize))
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if self.is_new && !self.keep {
            // It fails if somebody else put something into it, which then stays.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_visible_unless_it_is_kept() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("work");
        let folder = WorkFolder::open(&path, false).unwrap();
        let (file, is_reused) = folder.open_file("a", Some(0)).unwrap();
        assert!(is_reused, "an empty file fits a size of zero");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        drop((file, folder));
        assert!(!path.exists());
    }

    #[test]
    fn kept_file_is_reused_if_its_size_fits() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(parent.path(), true).unwrap();
        let (file, is_reused) = folder.open_file("a", Some(8192)).unwrap();
        assert!(!is_reused);
        file.set_len(8192).unwrap();
        assert!(folder.open_file("a", Some(8192)).unwrap().1);
        assert_eq!(folder.reusable_bytes(["a", "b"].into_iter(), 8192), 8192);
        assert!(!folder.open_file("a", Some(4096)).unwrap().1);
        drop(folder);
        assert!(parent.path().join("a").exists());
    }
}
