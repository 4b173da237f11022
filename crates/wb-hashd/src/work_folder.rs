//! The folder of test files and logs, which leaves nothing behind.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::HashdError;

/// A folder for files that vanish when the process ends, however it ends, unless they are to be kept.
///
/// A file that is not kept never has a name (O_TMPFILE): the kernel frees it with its last descriptor. So its folder
/// need not exist either: the nearest one that does is on the same file system.
#[derive(Clone, Debug)]
pub(crate) struct WorkFolder {
    path: PathBuf,
    keep: bool,
}

impl WorkFolder {
    /// The folder is created only for files that are kept.
    pub(crate) fn open(path: &Path, keep: bool) -> Result<Self, HashdError> {
        if keep {
            fs::create_dir_all(path).map_err(HashdError::file("create", path))?;
        }
        Ok(Self { path: existing_ancestor(path).to_owned(), keep })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file for reading and writing; the second value is whether it existed with `reuse_size`.
    pub(crate) fn open_file(&self, name: &str, reuse_size: Option<u64>) -> Result<(File, bool), HashdError> {
        let path = self.path.join(name);
        let open = || -> io::Result<(File, bool)> {
            if !self.keep {
                return Ok((self.open_unnamed(name)?, false));
            }
            let file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
            let is_reused = reuse_size.is_some_and(|size| file.metadata().is_ok_and(|metadata| metadata.len() == size));
            if !is_reused {
                file.set_len(0)?;
            }
            Ok((file, is_reused))
        };
        open().map_err(HashdError::file("create", &path))
    }

    /// Creates a file without a name. Where the file system cannot (open(2), O_TMPFILE), it has one for a moment.
    fn open_unnamed(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(&self.path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(file.into()),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {
                let path = self.path.join(format!(".{name}.{}", std::process::id()));
                let file = File::options().read(true).write(true).create_new(true).open(&path)?;
                fs::remove_file(&path)?;
                Ok(file)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Bytes of the files with these names that have this size and can be used again.
    pub(crate) fn reusable_bytes<'a>(&self, names: impl Iterator<Item = &'a str>, size: u64) -> u64 {
        let fits = |name: &&str| fs::metadata(self.path.join(name)).is_ok_and(|metadata| metadata.len() == size);
        if self.keep { names.filter(fits).count() as u64 * size } else { 0 }
    }

    pub(crate) fn free_bytes(&self) -> Result<u64, HashdError> {
        let failed = HashdError::file("read", &self.path);
        let figures = rustix::fs::statvfs(&self.path).map_err(|errno| failed(errno.into()))?;
        Ok(figures.f_bavail.saturating_mul(figures.f_frsize))
    }
}

/// The path itself, or the nearest folder above it that exists.
fn existing_ancestor(path: &Path) -> &Path {
    let named = |path: &&Path| !path.as_os_str().is_empty();
    path.ancestors().take_while(named).find(|path| path.exists()).unwrap_or(Path::new("."))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_a_name_unless_it_is_kept() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(&parent.path().join("work"), false).unwrap();
        let (file, is_reused) = folder.open_file("a", Some(0)).unwrap();
        assert!(!is_reused);
        file.set_len(10).unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn kept_file_is_reused_if_its_size_fits() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("work");
        let folder = WorkFolder::open(&path, true).unwrap();
        let (file, is_reused) = folder.open_file("a", Some(8192)).unwrap();
        assert!(!is_reused);
        file.set_len(8192).unwrap();
        assert!(folder.open_file("a", Some(8192)).unwrap().1);
        assert_eq!(folder.reusable_bytes(["a", "b"].into_iter(), 8192), 8192);
        assert!(!folder.open_file("a", Some(4096)).unwrap().1);
        assert!(path.join("a").exists());
    }

    #[test]
    fn files_lie_in_the_nearest_folder_that_exists() {
        assert_eq!(existing_ancestor(Path::new("/proc/nowhere/at/all")), Path::new("/proc"));
        assert_eq!(existing_ancestor(Path::new("nowhere/at/all")), Path::new("."));
        assert_eq!(existing_ancestor(Path::new("/proc")), Path::new("/proc"));
    }
}
