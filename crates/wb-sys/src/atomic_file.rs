//! Atomic replacement of files: after a crash or a power failure, a file has either its old or its new content.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::unnamed_file;

/// The new content of a file, in a temporary file in the same folder, which is removed on drop unless it is persisted.
/// Where the file system supports files without names, a killed process leaves nothing either.
#[derive(Debug)]
pub struct AtomicFile<'a> {
    path: &'a Path,
    temporary: PathBuf,
    file: File,
    /// Whether the file is at `temporary`.
    is_named: bool,
}

impl<'a> AtomicFile<'a> {
    /// Creates the temporary file. It has the mode `mode` without the bits of the umask, and the name `temporary` where
    /// it needs one; a file of that name that a killed process has left is removed.
    pub fn create(path: &'a Path, temporary: PathBuf, mode: u32) -> io::Result<Self> {
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(match unnamed_file::create(folder(path), mode)? {
            Some(file) => Self { path, temporary, file, is_named: false },
            None => {
                let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
                Self { path, temporary, file, is_named: true }
            }
        })
    }

    /// The temporary file, whose attributes the replaced file will have.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Sets exactly this mode, whatever the umask.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(mode))
    }

    /// Writes the content, flushes it to the device, replaces the file, and flushes the folder. If only the latter
    /// fails, the file is replaced nevertheless.
    pub fn persist(mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)?;
        self.file.sync_all()?;
        let is_linked = !self.is_named && self.link()?;
        if !is_linked {
            fs::rename(&self.temporary, self.path)?;
            self.is_named = false;
        }
        sync_folder(folder(self.path))
    }

    /// Gives an unnamed file its name, or the temporary one if that name exists. Returns whether it was the former.
    fn link(&mut self) -> io::Result<bool> {
        match unnamed_file::link(&self.file, self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                unnamed_file::link(&self.file, &self.temporary)?;
                self.is_named = true;
                Ok(false)
            }
            result => result.map(|()| true),
        }
    }
}

impl Drop for AtomicFile<'_> {
    fn drop(&mut self) {
        if self.is_named {
            // The failure before this one is the one to report.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Several processes may replace a file at the same time: the temporary file `.NAME.PID.new` is this process's.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let temporary = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    AtomicFile::create(path, temporary, 0o666)?.persist(content)
}

/// Flushes the entries of a folder to the device; the empty path is the working folder.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// The folder of a file; the working folder for a name alone.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_without_leaving_a_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        replace(&path, b"old").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn a_file_that_is_not_persisted_is_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        let unfinished = AtomicFile::create(&path, folder.path().join("a.new"), 0o600).unwrap();
        let is_supported = unnamed_file::create(folder.path(), 0o600).unwrap().is_some();
        assert_eq!(names(folder.path()).len(), if is_supported { 1 } else { 2 });
        drop(unfinished);
        assert_eq!(names(folder.path()), ["a"]);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn a_failed_replacement_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"new").is_err(), "a file cannot replace a folder");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn the_mode_is_exact_and_a_leftover_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, temporary) = (folder.path().join("a"), folder.path().join("a.new"));
        for content in ["new", "newer"] {
            fs::write(&temporary, "longer than the new content").unwrap();
            let file = AtomicFile::create(&path, temporary.clone(), 0o600).unwrap();
            file.set_mode(0o646).unwrap();
            file.persist(content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o646);
            assert_eq!(names(folder.path()), ["a"]);
        }
    }

    #[test]
    fn a_file_with_a_temporary_name_is_replaced_too() {
        let folder = tempfile::tempdir().unwrap();
        let (path, temporary) = (folder.path().join("a"), folder.path().join("a.new"));
        for content in ["new", "newer"] {
            let file = File::create_new(&temporary).unwrap();
            let file = AtomicFile { path: &path, temporary: temporary.clone(), file, is_named: true };
            file.persist(content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(names(folder.path()), ["a"]);
        }
    }
}
